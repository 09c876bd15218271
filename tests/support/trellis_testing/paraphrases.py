"""Pairs of sentences of one meaning that share few words."""

PARAPHRASES = [
    ("How do I reset my password?", "I forgot my password, how can I set a new one?"),
    ("When will my parcel arrive?", "When is my parcel going to be delivered?"),
    ("The screen of my laptop is broken.", "My laptop has a broken display."),
    ("What is the capital of France?", "Which city is the capital of France?"),
    ("Please cancel my subscription.", "I want to cancel my subscription."),
]
