"""Versions of a dataset, addressed by content."""
