"""Pipelines of data operators: saved, checked, previewed and run."""
