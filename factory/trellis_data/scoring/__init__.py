"""Operators that say how good a row is."""
