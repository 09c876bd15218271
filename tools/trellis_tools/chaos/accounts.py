"""Two accounts of a run that must agree: what it wrote into its spool, and what the API has of it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter
from trellis_cli.client import ApiClient
from trellis_contracts.attempt import EVENTS_FOLDER
from trellis_contracts.events import Event

#: A metric at a step.
Point = tuple[str, int]
_EVENT: TypeAdapter[Any] = TypeAdapter(Event)
_MAX_POINTS = 20_000
_PAGE_LINES = 5000


@dataclass(frozen=True)
class Account:
    """Metrics and lines of output of one job."""

    #: Null where a value is no finite number.
    points: dict[Point, float | None] = field(default_factory=dict)
    #: "<stream>: <text>"
    lines: list[str] = field(default_factory=list)
    #: What is wrong with it in itself: a step twice, a gap in the numbers of lines.
    faults: list[str] = field(default_factory=list)
    #: How often a run of the job began; known from the spool alone.
    beginnings: int = 0


def read_spool(job_dir: Path, attempt: int | None = None) -> list[Any]:
    """Read every event that the processes of a job wrote down, whether or not the platform received it."""
    files = sorted(job_dir.glob(f"attempt-{attempt or '*'}/{EVENTS_FOLDER}/*.jsonl"))
    lines = [line for file in files for line in file.read_bytes().split(b"\n")[:-1]]
    return [_EVENT.validate_json(line) for line in lines if line]


def read_own(job_dir: Path) -> Account:
    """Return what the job's own processes recorded."""
    return summarise(read_spool(job_dir))


def summarise(events: Sequence[Any]) -> Account:
    """Summarize events as an account."""
    own = Account()
    beginnings = 0
    for event in events:
        if event.kind == "metrics":
            for key, value in event.values.items():
                if (key, event.step) in own.points:
                    own.faults.append(f"the run reported {key} at step {event.step} twice")
                own.points[key, event.step] = value if math.isfinite(value) else None
        elif event.kind == "log":
            own.lines.extend(f"{event.stream}: {line}" for line in event.lines)
        elif event.kind == "progress":
            beginnings += event.phase == "preparing"
    return Account(own.points, own.lines, own.faults, beginnings)


def read_kept(client: ApiClient, job_id: str) -> Account:
    """Read the account that the API keeps."""
    kept = Account()
    for series in client.get(f"/jobs/{job_id}/metrics", max_points=_MAX_POINTS)["series"]:
        steps = series["steps"]
        if not series["total_points"] == len(steps) == len(set(steps)):
            kept.faults.append(f"{series['key']} has {series['total_points']} points at steps {steps}")
        kept.points.update(
            {(series["key"], step): value for step, value in zip(steps, series["values"], strict=True)}
        )
    numbers: list[int] = []
    while page := client.get(f"/jobs/{job_id}/logs", after=len(numbers), limit=_PAGE_LINES)["lines"]:
        numbers += [each["line"] for each in page]
        kept.lines.extend(f"{each['stream']}: {each['text']}" for each in page)
    if numbers != list(range(1, len(numbers) + 1)):
        kept.faults.append(f"the {len(numbers)} log lines have gaps in their numbering")
    return kept
