"""Tells the platform that the run is alive, and hears whether it should stop."""

import json
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trellis_contracts.attempt import ADAPTERS_FILE, BEAT_FILE
from trellis_contracts.evaluation import AdapterList
from trellis_contracts.events import Heartbeat
from trellis_data.atomic_files import write_atomically

from trellis_train.supervise.platform_client import (
    PlatformAwayError,
    PlatformClient,
    RefusedError,
    RejectedError,
)

logger = logging.getLogger(__name__)


class HeartbeatSender:
    """A thread that gives a sign of life every ``interval_s``; a failed one is simply followed by the next.

    It touches a file in the attempt's folder, which the workers see while the API is away, and posts a
    heartbeat. In this order: where the file system hangs, nothing is posted, for the run cannot go on.
    """

    def __init__(
        self,
        client: PlatformClient,
        attempt_dir: Path,
        attempt: int,
        *,
        interval_s: float,
        read_step: Callable[[], int],
        on_stop_requested: Callable[[], object],
    ) -> None:
        self._client = client
        self._beat_path = attempt_dir / BEAT_FILE
        self._attempt = attempt
        self._interval_s = interval_s
        self._read_step = read_step
        self._on_stop_requested = on_stop_requested
        self._adapters: list[Any] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Begin to beat, at once."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the heartbeat."""
        self._is_over.set()

    def _run(self) -> None:
        has_been_told = False
        while not self._is_over.is_set():
            if self._beat() and not has_been_told:
                has_been_told = True
                self._on_stop_requested()
            self._is_over.wait(self._interval_s)

    def _beat(self) -> bool:
        """Send one heartbeat and tell whether the platform asks the run to stop."""
        try:
            # Only its time changes: a full disk takes that, too.
            self._beat_path.touch()
        except OSError as error:
            logger.warning("the heartbeat file could not be written: %s", error)
        beat = Heartbeat(attempt=self._attempt, step=self._read_step())
        try:
            answer = self._client.post("heartbeat", json.dumps(beat.model_dump()).encode())
        except (PlatformAwayError, RefusedError, RejectedError) as error:
            logger.debug("heartbeat not delivered: %s", error)
            return False
        self._note_adapters(answer.body.get("adapters") or [])
        return answer.body.get("stop_requested") is True

    def _note_adapters(self, adapters: list[Any]) -> None:
        """Write what an engine shall serve beside its model if it changed."""
        if adapters == self._adapters:
            return
        try:
            wanted = AdapterList.model_validate({"adapters": adapters})
            write_atomically(self._beat_path.with_name(ADAPTERS_FILE), wanted.model_dump_json())
        except (OSError, ValueError) as error:  # tried again with the next beat
            logger.warning("the adapters to serve cannot be written: %s", error)
            return
        self._adapters = adapters
