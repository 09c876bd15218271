"""Order of waiting jobs, and which one is launched next."""
