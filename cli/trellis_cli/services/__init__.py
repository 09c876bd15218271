"""The processes of one platform: what they are, how they start, and how exactly they end."""
