"""Sample how many requests a rollout engine runs, how many wait, and how full its KV cache is.

vLLM tells stat loggers of every step of the engine; ``vllm.stat_logger_plugins`` is its entry point for those
of other packages. A bounded number of samples stays in the server's process until the trainer takes them.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

from trellis_contracts.events import MAX_LOAD_SAMPLES
from vllm.v1.metrics.loggers import StatLoggerBase

#: Between two samples of a busy engine, to begin with: steps of small models take a second or two.
INTERVAL_S = 0.05


class Load(NamedTuple):
    """What an engine was at, from ``at`` (seconds since 1970) on."""

    at: float
    running: int
    waiting: int
    #: Of the KV cache, the part that is in use: 0 to 1.
    kv_use: float


class LoadSamples:
    """Samples since they were taken last: evenly spread, and whenever work begins or ends."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        #: Of each engine of the process (with data parallelism, there are several): running, waiting, use.
        self._engines: dict[int, tuple[int, int, float]] = {}
        self._samples: list[Load] = []
        self._interval_s = INTERVAL_S
        self._last_at = 0.0
        self._was_busy = False

    def note(self, engine: int, running: int, waiting: int, kv_use: float) -> None:
        """Take in what an engine said of a step. Runs at every step: a comparison, most of the time."""
        self._engines[engine] = (running, waiting, kv_use)
        at = self._clock()
        is_busy = any(running or waiting for running, waiting, _ in self._engines.values())
        if is_busy == self._was_busy and (not is_busy or at - self._last_at < self._interval_s):
            return
        self._last_at, self._was_busy = at, is_busy
        of_all = self._engines.values()
        self._samples.append(
            Load(
                at,
                sum(each[0] for each in of_all),
                sum(each[1] for each in of_all),
                max(each[2] for each in of_all),
            )
        )
        if len(self._samples) > MAX_LOAD_SAMPLES:
            self._samples = self._samples[::2]
            self._interval_s *= 2

    def take(self) -> list[Load]:
        """Take the samples so far, in order, and start over."""
        samples, self._samples = self._samples, []
        self._interval_s = INTERVAL_S
        return samples


#: Of the engine of this process.
SAMPLES = LoadSamples()


class LoadLogger(StatLoggerBase):
    """Notes the load of an engine in ``SAMPLES``."""

    def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
        del vllm_config, engine_index

    def record(
        self, scheduler_stats: Any, iteration_stats: Any, mm_cache_stats: Any = None, engine_idx: int = 0
    ) -> None:
        del iteration_stats, mm_cache_stats
        if scheduler_stats is None:
            return
        waiting = scheduler_stats.num_waiting_reqs + scheduler_stats.num_skipped_waiting_reqs
        SAMPLES.note(engine_idx, scheduler_stats.num_running_reqs, waiting, scheduler_stats.kv_cache_usage)

    def log_engine_initialized(self) -> None:
        """Say nothing: vLLM's own loggers do."""
