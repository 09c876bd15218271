"""Events of jobs and the live stream that pages read."""
