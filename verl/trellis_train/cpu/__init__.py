"""Makes training on a CPU faster: an optional layer that nothing imports (``platform.layer``)."""
