"""Which format rows have, how sure that is, and the same rows in another format."""
