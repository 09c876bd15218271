"""Output of jobs."""
