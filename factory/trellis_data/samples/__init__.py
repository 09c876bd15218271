"""Sample data: small tasks to try the platform with, made up by programs, the same at every time."""
