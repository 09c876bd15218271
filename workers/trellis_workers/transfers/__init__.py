"""Takes models elsewhere: pushes to hubs, and exports to GGUF files."""
