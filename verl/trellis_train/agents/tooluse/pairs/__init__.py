"""Preference pairs from a model's own responses, ordered by the reward of tool use."""
