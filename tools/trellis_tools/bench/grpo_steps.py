"""Where the time of a GRPO step goes, on the platform and in TRL, as medians over the measured steps."""

import itertools
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from trellis_tools.bench.engine_job import seconds_of

#: verl's timings that make each part of our step. ``gen`` runs from the trainer's first look for answers
#: until the last response is scored and in the queue.
OUR_PARTS: Mapping[str, tuple[str, ...]] = {
    "generation": ("timing_s/gen",),
    "log_probs": ("timing_s/old_log_prob", "timing_s/ref"),
    "update": ("timing_s/update_actor",),
    "sync": ("timing_s/update_weights",),
}
#: What no part accounts for: advantages, metrics, the events for the platform, calls between processes.
REST = "waiting_and_other"
STEP = "step"
#: Seconds by part, the whole step among them.
Split = dict[str, float]


def split_ours(metrics: Sequence[Mapping[str, Any]], *, warm_up: int) -> Split:
    """Compute the median seconds of the steps after ``warm_up`` from the metrics events of a run.

    A step lasts from the event of the step before to its own: what verl does between
    its own timers is part of it.
    """
    walls, parts = [], []
    for before, event in itertools.pairwise(metrics):
        if event["step"] <= warm_up:
            continue
        walls.append(seconds_of(event) - seconds_of(before))
        values = event["values"]
        parts.append({name: sum(values.get(key, 0.0) for key in keys) for name, keys in OUR_PARTS.items()})
    return _medians(walls, parts)


def split_trl(times: Mapping[str, Any], *, warm_up: int) -> Split:
    """Split TRL's step times into parts in the same way (``trellis_train.comparison.trl_grpo``)."""
    ends = times["ends_s"]
    walls = [end - start for start, end in itertools.pairwise(ends)]
    rows = [{part: times["parts_s"][part][step] for part in OUR_PARTS} for step in range(len(walls))]
    return _medians(walls[warm_up:], rows[warm_up:])


def _medians(walls: Sequence[float], parts: Sequence[Mapping[str, float]]) -> Split:
    if not walls:
        raise ValueError("no steps were measured after the warm-up")
    rest = [wall - sum(row.values()) for wall, row in zip(walls, parts, strict=True)]
    medians = {name: statistics.median(row[name] for row in parts) for name in parts[0]}
    return {STEP: statistics.median(walls), **medians, REST: statistics.median(rest)}
