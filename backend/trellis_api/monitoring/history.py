"""What machines measured, over time: kept by a worker every ten seconds, read in stretches."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from statistics import fmean, median
from typing import Any

from sqlmodel import Session

from trellis_api.core.columns import utc_now
from trellis_api.core.errors import InvalidRequest
from trellis_api.monitoring import repository
from trellis_api.monitoring.models import MachineSample
from trellis_api.monitoring.schemas import MachineHistory, NodeSamples, ProcessHistory

#: Between two samples of a node.
INTERVAL_S = 10.0
#: Between two looks at processes, which take longer.
PROCESSES_INTERVAL_S = 60.0
KEPT = timedelta(days=7)
#: A rate over a longer gap would hide what happened in it.
_LONGEST_GAP = timedelta(seconds=60)
_DEFAULT_RANGE = timedelta(hours=24)
_GROWTH_RATIO, _GROWTH_BYTES = 1.1, 100 * 1000**2
#: Looks at a process below which nothing is said of its growth.
_FEWEST_LOOKS = 6


def find_previous(session: Session, *, node: str, at: datetime) -> MachineSample | None:
    """The sample before, where it is recent enough to compute rates from."""
    return repository.find_last_sample(session, node=node, since=at - _LONGEST_GAP)


def record(session: Session, samples: Sequence[MachineSample]) -> None:
    """Keep samples, and forget those that are a week old."""
    for sample in samples:
        repository.add_sample(session, sample=sample)
    repository.delete_samples(session, before=utc_now() - KEPT)


def read_history(
    session: Session, *, since: datetime | None, until: datetime | None, max_points: int
) -> MachineHistory:
    """Means over at most ``max_points`` stretches of equal length; the default is the last 24 hours."""
    since, until = _resolve_range(since, until)
    stretch_s = max(INTERVAL_S, (until - since).total_seconds() / max_points)
    stretches: dict[str, dict[int, list[Mapping[str, float]]]] = defaultdict(lambda: defaultdict(list))
    for node, at, figures in repository.list_samples(session, since=since, until=until):
        stretches[node][int((at - since).total_seconds() // stretch_s)].append(figures)
    nodes = [_average(node, found, since, stretch_s) for node, found in sorted(stretches.items())]
    return MachineHistory(since=since, until=until, stretch_s=stretch_s, nodes=nodes)


def _average(
    node: str, stretches: Mapping[int, Sequence[Mapping[str, float]]], since: datetime, stretch_s: float
) -> NodeSamples:
    names = sorted({name for found in stretches.values() for figures in found for name in figures})
    columns: dict[str, list[float | None]] = {name: [] for name in names}
    for _, found in sorted(stretches.items()):
        for name in names:
            values = [figures[name] for figures in found if name in figures]
            columns[name].append(round(fmean(values), 3) if values else None)
    at = [since + timedelta(seconds=index * stretch_s) for index in sorted(stretches)]
    return NodeSamples(node=node, at=at, figures=columns)


def read_processes(
    session: Session, *, since: datetime | None, until: datetime | None
) -> list[ProcessHistory]:
    """Large processes of the range: those that grow first, then by size."""
    since, until = _resolve_range(since, until)
    looks = repository.list_samples_with_processes(session, since=since, until=until)
    last_look = {sample.node: sample.at for sample in looks}
    seen: dict[tuple[str, int, float], list[tuple[datetime, dict[str, Any]]]] = defaultdict(list)
    for sample in looks:
        for process in sample.processes:
            seen[sample.node, process["pid"], process["started_at"]].append((sample.at, process))
    found = [
        _describe(node, looked, is_alive=looked[-1][0] == last_look[node])
        for (node, _, _), looked in seen.items()
    ]
    return sorted(found, key=lambda each: (not each.is_growing, not each.is_alive, -each.memory_bytes))


def _describe(
    node: str, looked: Sequence[tuple[datetime, dict[str, Any]]], *, is_alive: bool
) -> ProcessHistory:
    memory = [int(process["memory_bytes"]) for _, process in looked]
    last = looked[-1][1]
    growth = None
    is_growing = False
    if len(memory) >= _FEWEST_LOOKS:
        third = len(memory) // 3
        first, latest = median(memory[:third]), median(memory[-third:])
        growth = int(latest - first)
        is_growing = latest > first * _GROWTH_RATIO and growth > _GROWTH_BYTES
    return ProcessHistory(
        node=node,
        pid=last["pid"],
        name=last["name"],
        job_id=last["job_id"],
        started_at=datetime.fromtimestamp(last["started_at"], UTC),
        is_alive=is_alive,
        memory_bytes=memory[-1],
        peak_bytes=max(memory),
        growth_bytes=growth,
        is_growing=is_growing,
        at=[at for at, _ in looked],
        memory=memory,
    )


def _resolve_range(since: datetime | None, until: datetime | None) -> tuple[datetime, datetime]:
    until = until or utc_now()
    since = since or until - _DEFAULT_RANGE
    if since >= until:
        message = "`since` has to be earlier than `until`."
        raise InvalidRequest(message, [{"code": "empty_range", "field": "since", "message": message}])
    return max(since, until - KEPT), until
