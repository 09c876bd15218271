"""What a dataset's rows may look like: what both the intake and the training side read.

A format that the intake recognises must be one that the training side can convert.
"""

#: Column names in the order in which they are looked for.
PROMPT_COLUMNS = ("prompt", "question", "instruction", "problem", "input")
ANSWER_COLUMNS = ("answer", "response", "output", "solution", "completion")
#: Who may speak in a conversation.
ROLES = frozenset({"system", "developer", "user", "assistant", "tool", "function"})
