"""What machines measured, over time: kept by a worker every ten seconds, read in stretches."""

import math
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
#: Beyond, a difference or another time zone is no date any more.
_FIRST_YEAR, _LAST_YEAR = 1971, 9998
_GROWTH_RATIO, _GROWTH_BYTES = 1.1, 100 * 1000**2
#: Looks at a process below which nothing is said of its growth.
_FEWEST_LOOKS = 6
#: Samples of a node that are read at most, or so many a stretch: decoding all of a week takes seconds.
_READ_SAMPLES, _SAMPLES_A_STRETCH = 1500, 3
#: Looks just before the end are all read: they tell which processes are still there.
_NEWEST_LOOKS = 10


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
    """Return the previous sample, if it is recent enough to compute rates from."""
    return repository.find_last_sample(session, node=node, since=at - _LONGEST_GAP)


def record(session: Session, samples: Sequence[MachineSample]) -> None:
    """Keep samples, and forget those that are a week old."""
    for sample in samples:
        repository.add_sample(session, sample=sample)
    repository.delete_samples(session, before=utc_now() - KEPT)


def read_history(
    session: Session,
    *,
    since: datetime | None,
    until: datetime | None,
    max_points: int,
    node: str | None = None,
) -> MachineHistory:
    """Read means over at most ``max_points`` equal intervals; the default is the last 24 hours.

    Of a long range every nth sample is read, so that each stretch has at least two.
    """
    since, until = resolve_range(since, until)
    stretch_s = max(SAMPLE_INTERVAL_S, (until - since).total_seconds() / max_points)
    stretches: dict[str, dict[int, dict[str, _Mean]]] = defaultdict(
        lambda: defaultdict(lambda: defaultdict(_Mean))
    )
    at_most = max(_READ_SAMPLES, max_points * _SAMPLES_A_STRETCH)
    moments = list_moments(since, until, step_s=SAMPLE_INTERVAL_S, at_most=at_most)
    found = repository.iterate_figures(session, since=since, until=until, moments=moments, node=node)
    for name_of_node, at, figures in found:
        means = stretches[name_of_node][int((at - since).total_seconds() // stretch_s)]
        for name, value in figures.items():
            means[name].add(value)
    nodes = [_average(name, means, since, stretch_s) for name, means in sorted(stretches.items())]
    return MachineHistory(since=since, until=until, stretch_s=stretch_s, nodes=nodes)


def list_moments(since: datetime, until: datetime, *, step_s: float, at_most: int) -> list[datetime] | None:
    """List evenly spaced sample times up to the last one; None if there are few enough to read all."""
    last = until.timestamp() // step_s
    count = int(last - math.ceil(since.timestamp() / step_s)) + 1
    if count <= at_most:
        return None
    stride = math.ceil(count / at_most)
    return [datetime.fromtimestamp((last - back) * step_s, UTC) for back in range(0, count, stride)]


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
    session: Session,
    *,
    since: datetime | None,
    until: datetime | None,
    max_points: int,
    limit: int,
    job_id: str | None = None,
    is_growing: bool | None = None,
) -> list[ProcessHistory]:
    """Read the large processes of the range: growing ones first, then by size."""
    since, until = resolve_range(since, until)
    last_look: dict[str, datetime] = {}
    seen: dict[tuple[str, int, float], _Looked] = defaultdict(_Looked)
    moments = _list_looks(since, until, at_most=max_points)
    for node, at, processes in repository.iterate_looks(session, since=since, until=until, moments=moments):
        last_look[node] = at
        for process in processes:
            if job_id in (None, process["job_id"]):
                seen[node, process["pid"], process["started_at"]].add(at, process)
    described = [
        _describe(node, looked, is_alive=looked.at[-1] == last_look[node])
        for (node, _, _), looked in seen.items()
    ]
    chosen = [each for each in described if is_growing in (None, each.is_growing)]
    chosen.sort(key=lambda each: (not each.is_growing, not each.is_alive, -each.memory_bytes))
    return _name_jobs(session, chosen[:limit])


def _list_looks(since: datetime, until: datetime, *, at_most: int) -> list[datetime] | None:
    """List the sample times to read, with the newest ones complete; None: read all."""
    spread = list_moments(since, until, step_s=PROCESSES_INTERVAL_S, at_most=at_most - _NEWEST_LOOKS)
    if spread is None:
        return None
    last = spread[0].timestamp()
    newest = [
        datetime.fromtimestamp(last - back * PROCESSES_INTERVAL_S, UTC) for back in range(_NEWEST_LOOKS)
    ]
    return sorted({*spread, *newest})


def _name_jobs(session: Session, processes: list[ProcessHistory]) -> list[ProcessHistory]:
    """Add the names of the jobs that still exist."""
    names = repository.find_job_names(session, ids={each.job_id for each in processes if each.job_id})
    for each in processes:
        each.job_name = names.get(each.job_id or "")
    return processes


def _describe(node: str, looked: _Looked, *, is_alive: bool) -> ProcessHistory:
    memory, last = looked.memory, looked.last
    growth = None
    rate = None
    is_growing = False
    if len(memory) >= _FEWEST_LOOKS:
        third = len(memory) // 3
        first, latest = median(memory[:third]), median(memory[-third:])
        growth = int(latest - first)
        # The medians stand for the middles of the two thirds.
        took_h = (looked.at[-(third + 1) // 2] - looked.at[(third - 1) // 2]).total_seconds() / 3600
        rate = int(growth / took_h)
        is_growing = latest > first * _GROWTH_RATIO and growth > _GROWTH_BYTES
    return ProcessHistory(
        node=node,
        pid=last["pid"],
        name=last["name"],
        job_id=last["job_id"],
        job_name=None,
        started_at=datetime.fromtimestamp(last["started_at"], UTC),
        is_alive=is_alive,
        memory_bytes=memory[-1],
        peak_bytes=max(memory),
        growth_bytes=growth,
        growth_bytes_per_h=rate,
        is_growing=is_growing,
        at=looked.at,
        memory=memory,
    )


def resolve_range(since: datetime | None, until: datetime | None) -> tuple[datetime, datetime]:
    """Resolve the requested range, limited to what is kept; raises if it is empty."""
    for name, moment in (("since", since), ("until", until)):
        if moment is not None and not _FIRST_YEAR <= moment.year <= _LAST_YEAR:
            message = f"`{name}` has to lie between the years {_FIRST_YEAR} and {_LAST_YEAR}."
            raise InvalidRequest(message, [{"code": "out_of_range", "field": name, "message": message}])
    until = until or utc_now()
    since = since or until - _DEFAULT_RANGE
    if since >= until:
        message = "`since` has to be earlier than `until`."
        raise InvalidRequest(message, [{"code": "empty_range", "field": "since", "message": message}])
    return max(since, until - KEPT), until
