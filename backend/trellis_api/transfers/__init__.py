"""Models on their way out: pushes to a model hub, and exports to GGUF files."""
