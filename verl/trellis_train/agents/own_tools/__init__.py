"""Tools that people bring: their schemas, and Python code that is run in the sandbox."""
