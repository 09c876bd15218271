"""Adds up what trainers report of their phases (``timing_s/<phase>``), step by step or in stretches."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from sqlalchemy import func
from sqlalchemy import select as sa_select
from sqlmodel import Session

from trellis_api.jobs.metrics.models import metric_points
from trellis_api.jobs.metrics.query import find_series

PREFIX = "timing_s/"
STEP = "step"
#: What a phase is part of, by the names that verl's and our trainers use, in the order in which they run.
GROUPS: Mapping[str, str] = {
    "between": "data",
    "switch_wait": "waiting",
    "switch_to_rollout": "weight_sync",
    "gen": "generation",
    "gen_max": "generation",
    "switch_to_trainer": "weight_sync",
    "reward": "scoring",
    "old_log_prob": "log_probs",
    "ref": "log_probs",
    "values": "log_probs",
    "adv": "scoring",
    "train_batch": "update",
    "forward_backward": "update",
    "update_critic": "update",
    "update_actor": "update",
    "optimizer": "update",
    "update_weights": "weight_sync",
    "save_checkpoint": "checkpoint",
    "testing": "validation",
}
#: Of what single processes do, and of the parts of a response's life, which no trainer times.
PROCESS_GROUPS: Mapping[str, str] = {
    "generate": "generation",
    "request": "generation",
    "responses": "generation",
    "log_prob": "log_probs",
    "queued": "waiting",
    "tool": "tools",
}
OTHER = "other"
#: Phases that verl times inside ``step``; SFT and preference trainers save beside their steps.
_ALWAYS_BESIDE = frozenset({"testing"})


@dataclass
class Sums:
    """Seconds and steps of each stretch, by phase."""

    width: int
    first: int
    seconds: dict[str, dict[int, float]] = field(default_factory=dict)
    counts: dict[int, int] = field(default_factory=dict)

    @property
    def stretches(self) -> Sequence[int]:
        """Stretches with steps, in order."""
        return sorted(self.counts)


def add_up(session: Session, *, job_id: str, max_stretches: int) -> Sums:
    """Add up the times of all phases, in at most ``max_stretches`` stretches of equal length."""
    keys = {
        series_id: key.removeprefix(PREFIX)
        for key, series_id in find_series(session.connection(), job_id=job_id).items()
        if key.startswith(PREFIX) and "/" not in key.removeprefix(PREFIX)
    }
    points = metric_points.c
    own = points.series_id.in_(keys)
    bounds = sa_select(func.min(points.step), func.max(points.step)).where(own)
    first, last = session.connection().execute(bounds).one()
    if first is None:
        return Sums(width=1, first=0)
    sums = Sums(width=-(-(last - first + 1) // max_stretches), first=first)
    # A whole number, in SQLite as in PostgreSQL.
    stretch = (points.step - first) // sums.width
    query = sa_select(points.series_id, stretch, func.sum(points.value), func.count()).where(own)
    for series_id, place, seconds, count in session.connection().execute(
        query.group_by(points.series_id, stretch)
    ):
        if keys[series_id] == STEP:
            sums.counts[int(place)] = count
        is_number = seconds is not None and math.isfinite(seconds)
        sums.seconds.setdefault(keys[series_id], {})[int(place)] = seconds if is_number else 0.0
    return sums


def read_means(session: Session, *, job_id: str, keys: Sequence[str]) -> dict[str, float]:
    """Map metrics to their means over all steps; those that were not measured are missing."""
    ids = {
        series_id: key
        for key, series_id in find_series(session.connection(), job_id=job_id, keys=keys).items()
    }
    points = metric_points.c
    query = sa_select(points.series_id, func.avg(points.value)).where(points.series_id.in_(ids))
    rows = session.connection().execute(query.group_by(points.series_id))
    return {ids[series_id]: mean for series_id, mean in rows if mean is not None and math.isfinite(mean)}


def order(phases: Collection[str]) -> list[str]:
    """Order phases as they run; those without a known place come last."""
    places = {name: place for place, name in enumerate(GROUPS)}
    return sorted(phases, key=lambda phase: (places.get(phase, len(places)), phase))


def group_of(phase: str) -> str:
    """Return the group that a phase is part of."""
    return GROUPS.get(phase) or PROCESS_GROUPS.get(phase, OTHER)


def is_in_step(phase: str, phases: Sequence[str]) -> bool:
    """Tell whether a phase is part of the step time."""
    if phase in _ALWAYS_BESIDE:
        return False
    return phase != "save_checkpoint" or "between" not in phases
