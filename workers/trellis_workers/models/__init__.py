"""Models that workers bring to the data root."""
