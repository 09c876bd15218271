"""Metrics of jobs for services outside the platform: Weights & Biases."""
