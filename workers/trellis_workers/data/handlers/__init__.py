"""What the child does for each kind of task."""
