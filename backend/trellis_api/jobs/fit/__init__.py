"""Whether a dataset and a model suit a recipe, checked before launch."""
