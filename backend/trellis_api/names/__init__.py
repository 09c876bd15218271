"""Names in place of IDs: what requests call models, datasets, environments and agent code."""
