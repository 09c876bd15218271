"""Runs side by side: what they differ in, their curves, scores, evaluations and sampled responses."""
