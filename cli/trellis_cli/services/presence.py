"""Worker and beat have no address to ask; they show in the broker that they are alive."""

import redis
from trellis_contracts.presence import Presence

from trellis_cli.services.platform import Platform

#: How the answer begins where nobody can say whether the process lives.
NO_BROKER = "the broker does not answer"


def find_presence(platform: Platform, pattern: str, pid: int | None) -> str | None:
    """Return None if the process with this pid is registered under such a key, else what is wrong."""
    client = redis.Redis.from_url(platform.redis_url, socket_connect_timeout=1.0, socket_timeout=1.0)
    try:
        values = [client.get(key) for key in client.scan_iter(match=pattern)]
    except redis.RedisError as error:
        return f"{NO_BROKER}: {error}"
    finally:
        client.close()
    found = [Presence.model_validate_json(value) for value in values if isinstance(value, bytes)]
    return None if any(each.pid == pid for each in found) else "does not show itself in the broker"


def find_absence(problem: str | None) -> str | None:
    """Return the problem, unless it is the broker's: then the process's state is unknown."""
    return None if problem is None or problem.startswith(NO_BROKER) else problem
