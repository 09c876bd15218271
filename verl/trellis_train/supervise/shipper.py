"""Ships the event spool to the platform, in order and exactly once, however often the API goes away."""

import logging
import random
import threading
import time
from collections.abc import Callable
from pathlib import Path

from trellis_contracts.events import MetricsEvent, ProgressEvent
from trellis_contracts.spool import SpoolBatch, SpoolReader

from trellis_train.supervise.platform_client import (
    Answer,
    PlatformAwayError,
    PlatformClient,
    RefusedError,
    RejectedError,
)

logger = logging.getLogger(__name__)

POLL_INTERVAL_S = 0.05
_FIRST_BACKOFF_S = 0.1
_MAX_BACKOFF_S = 2.0
#: A refusal may be a restart with another database; one that lasts this long is final.
REFUSAL_PATIENCE_S = 60.0
#: Unsent bytes on disk above which log lines are dropped.
SPOOL_LIMIT_BYTES = 512_000_000
_MEASURE_INTERVAL_S = 2.0


class Shipper:
    """A thread that sends what the run's processes write into the spool."""

    def __init__(
        self,
        client: PlatformClient,
        attempt_dir: Path,
        attempt: int,
        *,
        on_refused: Callable[[str], None] = lambda _: None,
        refusal_patience_s: float = REFUSAL_PATIENCE_S,
        spool_limit_bytes: int = SPOOL_LIMIT_BYTES,
    ) -> None:
        """Take the client; ``on_refused`` is called once when the platform disowned this attempt for good."""
        self._client = client
        self._reader = SpoolReader(attempt_dir)
        self._attempt = attempt
        self._on_refused = on_refused
        self._refusal_patience_s = refusal_patience_s
        self._spool_limit_bytes = spool_limit_bytes
        self._wake = threading.Event()
        self._is_draining = threading.Event()
        self._deadline = float("inf")
        self._refused_since: float | None = None
        self._measured_at = 0.0
        self._is_full = False
        self._thread = threading.Thread(target=self._run, name="shipper", daemon=True)
        #: The latest step seen in the events, for the heartbeat.
        self.latest_step = 0

    def start(self) -> None:
        """Begin to ship."""
        self._thread.start()

    def wake(self) -> None:
        """Look at the spool now rather than at the next poll."""
        self._wake.set()

    def is_full(self) -> bool:
        """Tell whether so much waits to be sent that log lines must be dropped (measured every 2 s)."""
        now = time.monotonic()
        if now - self._measured_at > _MEASURE_INTERVAL_S:
            self._measured_at = now
            self._is_full = self._reader.measure_unsent_bytes() > self._spool_limit_bytes
        return self._is_full

    def drain(self, timeout_s: float) -> bool:
        """Send what is left and end the thread; False when the platform stayed away for too long."""
        self._deadline = time.monotonic() + timeout_s
        self._is_draining.set()
        self._wake.set()
        self._thread.join(timeout_s + 20)
        return not self._thread.is_alive() and self._reader.measure_unsent_bytes() == 0

    def _run(self) -> None:
        backoff_s = _FIRST_BACKOFF_S
        while True:
            was_draining = self._is_draining.is_set()
            try:
                has_sent = self.send_next()
                backoff_s = _FIRST_BACKOFF_S
            except PlatformAwayError as error:
                logger.debug("platform unreachable: %s", error)
                if time.monotonic() > self._deadline:
                    return
                time.sleep(backoff_s * random.uniform(0.5, 1.0))  # noqa: S311 - jitter
                backoff_s = min(_MAX_BACKOFF_S, backoff_s * 2)
                continue
            except RefusedError as error:
                if self._is_refusal_final(error):
                    return
                time.sleep(1.0)
                continue
            except OSError as error:  # the disk is full or gone: nothing to be done but wait
                logger.warning("the event spool cannot be read: %s", error)
                if time.monotonic() > self._deadline:
                    return
                time.sleep(1.0)
                continue
            if has_sent:
                continue
            if was_draining:
                return
            self._wake.wait(POLL_INTERVAL_S)
            self._wake.clear()

    def send_next(self) -> bool:
        """Send one batch; False when the spool holds nothing to send."""
        batch = self._reader.next_batch()
        if batch is None:
            return False
        self._note_steps(batch)
        try:
            answer = self._client.post("batches", batch.as_json(self._attempt))
        except RejectedError as error:
            if not self._reader.shrink():
                logger.error("an event was rejected and skipped: %s", error)
            return True
        self._refused_since = None
        self._settle(batch, answer)
        return True

    def _settle(self, batch: SpoolBatch, answer: Answer) -> None:
        details = answer.body.get("details") or {}
        expected = answer.body.get("expected", details.get("expected"))
        if not isinstance(expected, int) or expected < 1:
            raise PlatformAwayError(f"the response has no sequence number: {answer.body}")
        if answer.body.get("accepted") is True:
            expected = max(expected, batch.sequence + 1)
        elif expected != batch.sequence + 1:
            logger.warning("batch %d: the platform expects number %d", batch.sequence, expected)
            if expected == batch.sequence:  # asked for what it has just been given: do not spin
                raise PlatformAwayError("the platform requested the same batch again")
        self._reader.acknowledge(expected)

    def _note_steps(self, batch: SpoolBatch) -> None:
        steps = [event.step for event in batch.events if isinstance(event, MetricsEvent | ProgressEvent)]
        self.latest_step = max([self.latest_step, *steps])

    def _is_refusal_final(self, error: RefusedError) -> bool:
        now = time.monotonic()
        self._refused_since = self._refused_since or now
        if now - self._refused_since < self._refusal_patience_s and now < self._deadline:
            return False
        logger.error("the platform no longer accepts this attempt; uploads stop: %s", error)
        self._on_refused(str(error))
        return True
