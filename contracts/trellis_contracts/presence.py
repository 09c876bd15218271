"""Keys under which workers and beat show in Redis that they are alive; each expires unless renewed."""

from trellis_contracts.recipe import Strict

WORKER_KEY_PREFIX = "trellis:presence:worker:"
BEAT_KEY = "trellis:presence:beat"
RENEW_INTERVAL_S = 5.0
LIFETIME_S = 15


class Presence(Strict):
    """The value under a key, as JSON."""

    hostname: str
    pid: int
    #: Unix time.
    started_at: float
    renewed_at: float
