"""Measuring models: benchmarks, their scores, and the run of both."""
