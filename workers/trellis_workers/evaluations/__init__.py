"""Evaluations: bringing benchmarks, starting runs, taking in what they leave."""
