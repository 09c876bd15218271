"""Pipelines of jobs: stages that need each other, each an ordinary job, skipped where nothing changed."""
