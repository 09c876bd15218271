"""Dry runs of rewards."""
