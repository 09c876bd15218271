"""Word problems in arithmetic, and the calculator that an agent may solve them with."""
