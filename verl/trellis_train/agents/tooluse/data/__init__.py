"""Tools that do not exist, what people ask of them, and what calling them gives: all by seed."""
