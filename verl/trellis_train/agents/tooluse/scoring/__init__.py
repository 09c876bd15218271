"""What a response with tool calls is worth: the reward with its parts, and what to tell of it."""
