"""What machines measured, over time: kept by a worker every ten seconds, read in stretches."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any

from sqlmodel import Session
from trellis_contracts.tasks import SAMPLE_INTERVAL_S

from trellis_api.core.columns import utc_now
from trellis_api.core.errors import InvalidRequest
from trellis_api.monitoring import repository
from trellis_api.monitoring.models import MachineSample
from trellis_api.monitoring.schemas import MachineHistory, NodeSamples, ProcessHistory

#: Between two looks at processes, which take longer.
PROCESSES_INTERVAL_S = 60.0
KEPT = timedelta(days=7)
#: A rate over a longer gap would hide what happened in it.
_LONGEST_GAP = timedelta(seconds=60)
_DEFAULT_RANGE = timedelta(hours=24)
_GROWTH_RATIO, _GROWTH_BYTES = 1.1, 100 * 1000**2
#: Looks at a process below which nothing is said of its growth.
_FEWEST_LOOKS = 6


@dataclass(slots=True)
class _Mean:
    """Of one figure over a stretch, whose samples are not kept."""

    total: float = 0.0
    count: int = 0

    def add(self, value: float) -> None:
        self.total += value
        self.count += 1

    def read(self) -> float:
        return round(self.total / self.count, 3)


@dataclass(slots=True)
class _Looked:
    """What looks at one process found: all of the last, and the memory of each."""

    last: Mapping[str, Any] = field(default_factory=dict)
    at: list[datetime] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    def add(self, at: datetime, process: Mapping[str, Any]) -> None:
        self.last = process
        self.at.append(at)
        self.memory.append(int(process["memory_bytes"]))


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
    stretch_s = max(SAMPLE_INTERVAL_S, (until - since).total_seconds() / max_points)
    stretches: dict[str, dict[int, dict[str, _Mean]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(_Mean))
    )
    for node, at, figures in repository.iterate_figures(session, since=since, until=until):
        means = stretches[node][int((at - since).total_seconds() // stretch_s)]
        for name, value in figures.items():
            means[name].add(value)
    nodes = [_average(node, found, since, stretch_s) for node, found in sorted(stretches.items())]
    return MachineHistory(since=since, until=until, stretch_s=stretch_s, nodes=nodes)


def _average(
    node: str, stretches: Mapping[int, Mapping[str, _Mean]], since: datetime, stretch_s: float
) -> NodeSamples:
    names = sorted({name for means in stretches.values() for name in means})
    columns: dict[str, list[float | None]] = {name: [] for name in names}
    for _, means in sorted(stretches.items()):
        for name in names:
            columns[name].append(means[name].read() if name in means else None)
    at = [since + timedelta(seconds=index * stretch_s) for index in sorted(stretches)]
    return NodeSamples(node=node, at=at, figures=columns)


def read_processes(
    session: Session, *, since: datetime | None, until: datetime | None
) -> list[ProcessHistory]:
    """Large processes of the range: those that grow first, then by size."""
    since, until = _resolve_range(since, until)
    last_look: dict[str, datetime] = {}
    seen: dict[tuple[str, int, float], _Looked] = defaultdict(_Looked)
    for node, at, processes in repository.iterate_looks(session, since=since, until=until):
        last_look[node] = at
        for process in processes:
            seen[node, process["pid"], process["started_at"]].add(at, process)
    found = [
        _describe(node, looked, is_alive=looked.at[-1] == last_look[node])
        for (node, _, _), looked in seen.items()
    ]
    return sorted(found, key=lambda each: (not each.is_growing, not each.is_alive, -each.memory_bytes))


def _describe(node: str, looked: _Looked, *, is_alive: bool) -> ProcessHistory:
    memory, last = looked.memory, looked.last
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
        at=looked.at,
        memory=memory,
    )


def _resolve_range(since: datetime | None, until: datetime | None) -> tuple[datetime, datetime]:
    until = until or utc_now()
    since = since or until - _DEFAULT_RANGE
    if since >= until:
        message = "`since` has to be earlier than `until`."
        raise InvalidRequest(message, [{"code": "empty_range", "field": "since", "message": message}])
    return max(since, until - KEPT), until
