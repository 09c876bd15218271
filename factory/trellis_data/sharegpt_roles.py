"""Map ShareGPT's speakers to the roles of chat messages."""

#: ShareGPT's names of speakers; others are the same in both.
SPEAKERS = {
    "human": "user",
    "gpt": "assistant",
    "observation": "tool",
    "bing": "assistant",
    "chatgpt": "assistant",
}
TURN_NAMES = {"user": "human", "assistant": "gpt", "tool": "observation"}
#: A turn that nobody says: its text is the JSON of a call of a tool.
CALL_TURN = "function_call"
