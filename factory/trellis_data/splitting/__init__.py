"""Operators that say to which split a row belongs."""
