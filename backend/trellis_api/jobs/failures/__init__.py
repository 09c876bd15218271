"""What helps against a failure that is known."""
