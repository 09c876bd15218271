"""What evaluations use: rows, benchmarks and reward files."""

from collections.abc import Callable, Iterable
from typing import Any

from sqlmodel import Session
from trellis_contracts.states import ACTIVE

from trellis_api.core.uses import MOST_FINISHED, Use, VersionKey
from trellis_api.evaluations import repository


def find_of_benchmark(session: Session, benchmark: str) -> Iterable[Use]:
    """List unfinished evaluations that read a benchmark's files."""
    active = repository.list_active(session)
    return [Use("evaluation", row.id, row.name) for row, _ in active if benchmark in row.benchmark_names]


def find_of_dataset(session: Session, dataset_id: str) -> Iterable[Use]:
    """List unfinished evaluations that read rows of a dataset."""
    return _list_where(session, lambda order: order.get("dataset") == dataset_id)


def find_of_reward_file(session: Session, file_id: str) -> Iterable[Use]:
    """List unfinished evaluations that score with a person's own file."""
    return _list_where(session, lambda order: (order.get("scorer") or {}).get("file") == file_id)


def find_of_version(session: Session, version: VersionKey) -> Iterable[Use]:
    """List jobs that measure a model on rows of a version, or did."""
    found = repository.list_reading_version(session, dataset_id=version.dataset_id, version_id=version.id)
    unfinished = [(row, job) for row, job in found if job.state in ACTIVE]
    finished = [(row, job) for row, job in found if job.state not in ACTIVE]
    for row, job in [*unfinished, *finished[:MOST_FINISHED]]:
        yield Use("job", job.id, row.name, state=job.state, is_unfinished=job.state in ACTIVE)


def _list_where(session: Session, matches: Callable[[dict[str, Any]], bool]) -> list[Use]:
    return [
        Use("evaluation", row.id, row.name)
        for row, _ in repository.list_active(session)
        if any(matches(order) for order in row.request["benchmarks"])
    ]
