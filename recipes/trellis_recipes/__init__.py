"""Recipes: one YAML per algorithm, and the composition of an engine configuration from it."""
