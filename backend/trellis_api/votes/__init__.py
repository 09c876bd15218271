"""Votes of the playground: which of two answers is better, win rates, and pairs to learn from."""
