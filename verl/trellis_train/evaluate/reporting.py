"""What the platform hears while an evaluation runs: how far it is, and the scores so far."""

import time
from collections.abc import Sequence

from trellis_contracts.evaluation import Sample
from trellis_contracts.events import MetricsEvent, Phase, ProgressEvent

from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool

#: Between two reports of partial scores.
INTERVAL_S = 2.0


class Tally:
    """Mean of each metric over the samples of one benchmark so far; a failed sample counts as 0."""

    def __init__(self, metrics: Sequence[str]) -> None:
        self._sums = dict.fromkeys(metrics, 0.0)
        self.count = 0

    def add(self, sample: Sample) -> None:
        """Count one sample."""
        self.count += 1
        for metric in self._sums:
            self._sums[metric] += sample.parts.get(metric, 0.0)

    def means(self) -> dict[str, float]:
        """Return means by metric; empty before the first sample."""
        return {metric: total / self.count for metric, total in self._sums.items()} if self.count else {}


class Reporter:
    """Writes events of progress and partial scores, at most one of each every ``INTERVAL_S``."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self._phase: Phase = "loading"
        self._reported_at = 0.0
        #: Samples that there will be; None before the benchmarks are read.
        self.total: int | None = None
        self.done = 0
        self._news: dict[str, float] = {}

    def enter(self, phase: Phase) -> None:
        """Say at once what the run does now."""
        self._phase = phase
        self._write()

    def note(self, label: str, means: dict[str, float]) -> None:
        """Note one more sample of a benchmark, and its metrics so far."""
        self.done += 1
        self._news |= {f"{label}/{metric}": mean for metric, mean in means.items()}
        if time.monotonic() - self._reported_at >= INTERVAL_S:
            self._write()

    def advance(self, done: int) -> None:
        """Note how many samples are done by now; their scores are not known yet."""
        self.done = done
        if time.monotonic() - self._reported_at >= INTERVAL_S:
            self._write()

    def settle(self, label: str, scores: dict[str, float]) -> None:
        """Report the final scores of a benchmark immediately."""
        self._news |= {f"{label}/{metric}": value for metric, value in scores.items()}
        self._write()

    def _write(self) -> None:
        self._reported_at = time.monotonic()
        if self._news:
            self._spool.write(MetricsEvent(time=now(), step=self.done, values=self._news))
            self._news = {}
        self._spool.write(
            ProgressEvent(time=now(), phase=self._phase, step=self.done, total_steps=self.total)
        )
