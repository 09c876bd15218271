"""Fields by which the job list shows and sorts."""
