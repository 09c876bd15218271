"""Formats of rows: detection and conversion."""
