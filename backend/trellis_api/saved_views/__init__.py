"""Saved views: what a page shows, kept under a name for everybody (filters, columns, charts of a recipe)."""
