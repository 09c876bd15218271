"""Settings that open the platform itself: no job and no process that works on data is given them."""

#: The ways to its database, broker and API, the judges with their addresses, and the key of W&B.
PRIVATE_SETTINGS = frozenset(
    {
        "TRELLIS_WANDB_API_KEY",
        "TRELLIS_DATABASE_URL",
        "TRELLIS_REDIS_URL",
        "TRELLIS_TOKEN",
        "TRELLIS_JUDGES",
    }
)
