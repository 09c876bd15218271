"""Rewards: their catalogue, persons' own reward functions, and dry runs."""
