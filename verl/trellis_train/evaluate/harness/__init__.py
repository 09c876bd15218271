"""Tasks of lm-evaluation-harness, run through its own API on our engine."""
