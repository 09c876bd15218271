"""Measures the platform on one background thread, so that a request only reads what was found last.

While somebody looks it measures every few seconds, else as often as keeps the answers from getting too old.
"""

import logging
import math
import threading
import time
from collections.abc import Callable

from trellis_api.monitoring.machine import Machine
from trellis_api.monitoring.measurements import Measurement, Probe
from trellis_api.monitoring.schemas import ComponentHealth, ComponentRead

log = logging.getLogger(__name__)
#: A measurement older than this says nothing about the present.
MAX_AGE_S = 30.0
#: A page asks every few seconds; whoever has not asked for so long does not look any more.
_WATCHED_S = 30.0


class Probes:
    """A board with the last measurement of each part; ``start`` and ``stop`` frame its thread's life."""

    def __init__(
        self,
        components: dict[str, Probe],
        look_at_machine: Callable[[], Machine],
        *,
        interval_s: float = 3.0,
        unwatched_interval_s: float = 15.0,
    ) -> None:
        self._components = components
        self._look_at_machine = look_at_machine
        self._interval_s = interval_s
        self._unwatched_interval_s = unwatched_interval_s
        self._asked_at = -math.inf
        self._measured_at = -math.inf
        #: Rung by whoever begins to look, and by ``stop``.
        self._bell = threading.Event()
        self._measurements: dict[str, Measurement] = {}
        self._machine: Machine | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin to measure, at once and then in intervals."""
        if self._thread is not None:
            raise RuntimeError("the probes run already")
        self._stop.clear()
        self._thread = threading.Thread(target=self._run, name="monitoring-probes", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a probe that is under way is waited for (each is short)."""
        self._stop.set()
        self._bell.set()
        if self._thread is not None:
            self._thread.join(timeout=10)
            self._thread = None

    def measure_once(self) -> None:
        """Make every measurement now, on the caller's thread."""
        for name, probe in self._components.items():
            if self._stop.is_set():
                return
            self._measurements[name] = self._measure(name, probe)
        try:
            self._machine = self._look_at_machine()
        except Exception:  # the edge of a thread that must not end
            log.exception("the machine cannot be measured")

    def components(self) -> list[ComponentRead]:
        """Return the last measurements with their age; one that is too old counts as unknown."""
        self._note_question()
        return [self._read(name) for name in self._components]

    def machine(self) -> tuple[Machine | None, float | None]:
        """Return the last measurement of the machine and its age in seconds."""
        self._note_question()
        machine = self._machine
        return machine, None if machine is None else round(time.monotonic() - machine.at, 2)

    def _run(self) -> None:
        while not self._stop.is_set():
            self._bell.clear()
            self.measure_once()
            self._measured_at = time.monotonic()
            is_watched = self._measured_at - self._asked_at < _WATCHED_S
            if is_watched:
                self._stop.wait(self._interval_s)
            else:
                self._bell.wait(self._unwatched_interval_s)

    def _note_question(self) -> None:
        """Measure soon where the last measurement is older than those who look expect."""
        self._asked_at = time.monotonic()
        if self._asked_at - self._measured_at > self._interval_s:
            self._bell.set()

    def _measure(self, name: str, probe: Probe) -> Measurement:
        try:
            return probe()
        except Exception:  # the edge of a thread that must not end
            log.exception("the probe of %s failed", name)
            return Measurement(ComponentHealth.UNKNOWN, "Check failed; see the API log.")

    def _read(self, name: str) -> ComponentRead:
        measurement = self._measurements.get(name)
        if measurement is None:
            message = "Not checked yet."
            return ComponentRead(name=name, health=ComponentHealth.UNKNOWN, message=message, age_s=None)
        age_s = round(time.monotonic() - measurement.at, 2)
        if age_s > MAX_AGE_S:
            message = f"The last measurement is {age_s:.0f} s old: {measurement.message}"
            return ComponentRead(name=name, health=ComponentHealth.UNKNOWN, message=message, age_s=age_s)
        return ComponentRead(
            name=name,
            health=measurement.health,
            message=measurement.message,
            latency_ms=measurement.latency_ms,
            age_s=age_s,
            services=list(measurement.services),
        )
