"""Workflow files: a person's own agents, which recipes of the kind ``tune`` train."""
