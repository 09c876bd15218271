"""Alarms: what is visibly wrong with a run while it runs, and what to try."""
