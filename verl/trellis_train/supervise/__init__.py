"""What the parent of a run does: start the engine, report to the platform, end everything in time."""
