"""The samples of an evaluation: pages with filters, one sample, what changed against another evaluation."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlmodel import Session
from trellis_contracts.evaluation import Verdict
from trellis_evaluation.problem import EvaluationProblem
from trellis_evaluation.samples.store import Filters, open_store

from trellis_api.core.errors import DomainError
from trellis_api.core.pagination import InvalidCursor
from trellis_api.core.settings import Settings
from trellis_api.evaluations import service
from trellis_api.evaluations.errors import (
    ComparisonMissing,
    SampleNotFound,
    SamplesDamaged,
    SamplesNotReady,
)
from trellis_api.evaluations.folder import samples_path
from trellis_api.evaluations.schemas import Changed, SampleChanges, SamplePage, SampleRead

_ERRORS: dict[str, type[DomainError]] = {
    "samples_missing": SamplesNotReady,
    "sample_missing": SampleNotFound,
    "samples_damaged": SamplesDamaged,
    "samples_format": SamplesDamaged,
    "against_missing": ComparisonMissing,
    "cursor_invalid": InvalidCursor,
}


@dataclass(frozen=True)
class SampleQuery:
    """Which samples are wanted."""

    label: str
    verdicts: tuple[Verdict, ...] = ()
    group: tuple[str, str] | None = None
    search: str | None = None
    #: Another evaluation with a benchmark of the same label.
    against: str | None = None
    changed: Changed | None = None


@dataclass(frozen=True)
class Places:
    """Files of samples."""

    own: Path
    against: Path | None


def locate(session: Session, settings: Settings, *, evaluation_id: str, query: SampleQuery) -> Places:
    """Locate the files that a query reads; raises if an evaluation is missing or has no such benchmark."""
    if query.changed is not None and query.against is None:
        raise ComparisonMissing("'changed' requires 'against', the evaluation to compare with.")
    own = _find(session, evaluation_id, query.label)
    against = _find(session, query.against, query.label) if query.against else None
    return Places(
        samples_path(settings, own, query.label),
        samples_path(settings, against, query.label) if against else None,
    )


def read_page(places: Places, query: SampleQuery, *, cursor: str | None, limit: int) -> SamplePage:
    """Read one page; no transaction is open meanwhile."""
    filters = Filters(query.verdicts, query.group, query.search, query.changed)
    with store_errors(), ExitStack() as stack:
        store = stack.enter_context(open_store(places.own))
        against = stack.enter_context(open_store(places.against)) if places.against else None
        page = store.page(filters, cursor=cursor, limit=limit, against=against)
        changes = store.changes(against) if against else None
        return SamplePage(
            label=query.label,
            items=page.samples,
            next_cursor=page.next_cursor,
            fitting=page.fitting,
            counts=store.counts(),
            groups=store.groups(),
            changes=SampleChanges.model_validate(changes, from_attributes=True) if changes else None,
        )


def read_sample(places: Places, *, position: int, number: int) -> SampleRead:
    """Read one sample, with the one of the same problem in the other evaluation."""
    with store_errors(), ExitStack() as stack:
        sample = stack.enter_context(open_store(places.own)).get(position, number)
        against = stack.enter_context(open_store(places.against)) if places.against else None
        return SampleRead(sample=sample, against=against.find(sample.key, number) if against else None)


def _find(session: Session, evaluation_id: str, label: str) -> str:
    row = service.get_evaluation(session, evaluation_id=evaluation_id)
    labels = [order.label for order in service.read_request(row).benchmarks]
    if label not in labels:
        known = ", ".join(str(each) for each in labels)
        raise SampleNotFound(f"'{row.name}' has no benchmark with the label '{label}'; available: {known}.")
    return row.id


@contextmanager
def store_errors() -> Iterator[None]:
    """Turn what the store says into an error that clients see."""
    try:
        yield
    except EvaluationProblem as problem:
        raise _ERRORS.get(problem.code, SamplesDamaged)(str(problem)) from problem
