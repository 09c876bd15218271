"""Evaluation while a job trains: which checkpoints are measured, and what their scores lead to."""
