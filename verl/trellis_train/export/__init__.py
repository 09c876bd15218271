"""Checkpoints of every trainer as folders that Hugging Face libraries load."""
