"""A model and data small enough to train on a laptop's CPU in minutes, made from a seed."""
