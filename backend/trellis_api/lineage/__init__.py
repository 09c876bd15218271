"""Lineages: what models and datasets were made from, and what was made from them."""
