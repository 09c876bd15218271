"""Nodes as they measure themselves, for the charts of the system."""
