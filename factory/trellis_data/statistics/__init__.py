"""What the rows of a dataset are like, in numbers."""
