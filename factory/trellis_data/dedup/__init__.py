"""Operators that find duplicates."""
