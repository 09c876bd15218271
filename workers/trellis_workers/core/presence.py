"""Workers and beat show in Redis that they are alive, so that the API can tell without asking them.

``celery inspect`` waits for answers and a busy worker gives none; a key that
expires unless it is renewed costs the API one look.
"""

import logging
import os
import socket
import threading
import time
from typing import Any

import redis
from celery.signals import beat_init, worker_ready, worker_shutting_down
from trellis_contracts.presence import BEAT_KEY, LIFETIME_S, RENEW_INTERVAL_S, WORKER_KEY_PREFIX, Presence

log = logging.getLogger(__name__)
_TIMEOUT_S = 2.0


class PresenceKeeper:
    """Renews one key on a thread of its own until ``stop``; Redis may come and go meanwhile."""

    def __init__(self, redis_url: str, key: str, *, interval_s: float = RENEW_INTERVAL_S) -> None:
        self._redis = redis.Redis.from_url(
            redis_url, socket_timeout=_TIMEOUT_S, socket_connect_timeout=_TIMEOUT_S
        )
        self._key = key
        self._interval_s = interval_s
        self._started_at = time.time()
        self._is_reachable = True
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="presence", daemon=True)

    def start(self) -> None:
        """Begin to renew."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and delete the key so that the worker's leaving shows at once."""
        self._stop.set()
        self._thread.join(timeout=2 * _TIMEOUT_S)
        try:
            self._redis.delete(self._key)
        except redis.RedisError as error:
            log.debug("could not delete the presence key, it will expire: %s", error)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._renew()
            self._stop.wait(self._interval_s)

    def _renew(self) -> None:
        presence = Presence(
            hostname=socket.gethostname(),
            pid=os.getpid(),
            started_at=self._started_at,
            renewed_at=time.time(),
        )
        try:
            self._redis.set(self._key, presence.model_dump_json(), ex=LIFETIME_S)
        except redis.RedisError as error:
            if self._is_reachable:
                log.warning("Redis is not responding; presence updates resume when it is back: %s", error)
            self._is_reachable = False
        else:
            self._is_reachable = True


def install(redis_url: str) -> None:
    """Keep presence in every worker and beat process that Celery starts from here on."""
    keepers: list[PresenceKeeper] = []

    def begin(key: str) -> None:
        keeper = PresenceKeeper(redis_url, key)
        keepers.append(keeper)
        keeper.start()

    def on_worker_ready(**_signal: Any) -> None:
        begin(f"{WORKER_KEY_PREFIX}{socket.gethostname()}:{os.getpid()}")

    def on_beat_init(**_signal: Any) -> None:
        begin(BEAT_KEY)

    def on_worker_shutting_down(**_signal: Any) -> None:
        for keeper in keepers:
            keeper.stop()

    # Strong references: Celery would forget these functions when ``install`` returns.
    worker_ready.connect(on_worker_ready, weak=False)
    beat_init.connect(on_beat_init, weak=False)
    worker_shutting_down.connect(on_worker_shutting_down, weak=False)
