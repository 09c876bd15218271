"""Hours of use in minutes, while the memory of the services is watched."""
