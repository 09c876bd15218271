"""A run again, from the manifest that it wrote."""
