"""The HTTP API: writes what is wanted, reads what happened."""
