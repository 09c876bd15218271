"""Curves of jobs: points as they are written, read and shown."""
