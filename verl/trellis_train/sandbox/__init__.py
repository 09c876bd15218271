"""Runs code of strangers isolated, or not at all: no network, no data, and limits on all that it uses."""
