"""Which sweeps have something to do."""
