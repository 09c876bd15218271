"""Pipelines: what is to be done, the doing, the report."""
