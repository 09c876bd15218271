"""Evaluations: a model or checkpoint measured on benchmarks."""
