"""Environments of agents: made by a worker, listed with their tools, tried by hand."""
