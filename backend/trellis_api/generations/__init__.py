"""Rows that a model writes."""
