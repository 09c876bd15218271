"""Settings that open the platform itself: no job and no process that works on data is given them."""

#: The ways to its database, broker and API, and the judges with their addresses.
PRIVATE_SETTINGS = frozenset({"TRELLIS_DATABASE_URL", "TRELLIS_REDIS_URL", "TRELLIS_TOKEN", "TRELLIS_JUDGES"})
