"""Checkpoints of jobs: which are kept, which is the best, and their metrics."""
