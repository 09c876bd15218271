"""Benchmarks: what models can be measured on, and bringing the files of it."""
