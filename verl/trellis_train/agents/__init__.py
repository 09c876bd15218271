"""Agents that are trained: multi-turn environments, their tools and rewards."""
