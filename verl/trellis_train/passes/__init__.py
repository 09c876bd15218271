"""Passes of a trainer on a CPU through the model."""
