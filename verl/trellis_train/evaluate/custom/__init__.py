"""Datasets of the platform as benchmarks: their rows, and the ways in which answers to them are scored."""
