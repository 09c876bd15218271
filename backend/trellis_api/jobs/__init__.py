"""Training jobs: what was asked for, where each stands, and what it reported."""
