"""Models: weights that jobs start from, wherever they came from."""
