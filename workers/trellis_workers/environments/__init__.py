"""Environments of agents: made and tried in child processes."""
