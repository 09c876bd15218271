"""Link Search: an agent finds people in a database of profiles by writing SQL and reading profiles."""
