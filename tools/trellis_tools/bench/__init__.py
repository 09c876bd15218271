"""Benchmarks: what the platform promises about speed, measured on this machine in one run."""
