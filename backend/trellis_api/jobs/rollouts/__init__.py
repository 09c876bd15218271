"""Sampled responses of jobs, by step, by prompt and token by token."""
