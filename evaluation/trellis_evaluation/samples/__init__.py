"""Samples of finished benchmarks: one immutable file each, with pages, filters, search and changes."""
