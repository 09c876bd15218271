"""Export jobs: a checkpoint written as a model."""
