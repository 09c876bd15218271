"""Recipes: the algorithms that can be launched, as the catalogue describes them."""
