"""Where running jobs report: batches of events, and signs of life."""
