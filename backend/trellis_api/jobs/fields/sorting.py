"""Orders of the job list: for every column an SQL expression, and keyset pages over it.

Rows without a value (no metric, no dataset) come last in both directions; the id decides between equal ones.
Lengths of time are measured against one instant, which travels in the cursor, so that jobs that run
meanwhile do not move between two pages.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Literal

from sqlalchemy import (
    ColumnElement,
    Float,
    Select,
    String,
    and_,
    case,
    cast,
    func,
    literal,
    or_,
    select,
    true,
)
from sqlmodel import Session, col
from trellis_contracts.states import JobState

from trellis_api.core.columns import UtcDateTime, utc_now
from trellis_api.core.pagination import InvalidCursor, decode_cursor, encode_cursor
from trellis_api.datasets.models import Dataset
from trellis_api.jobs.fields import order as field_order
from trellis_api.jobs.fields.grouping import JobGrouping, count_groups, express_group, read_value
from trellis_api.jobs.fields.service import JobField, is_text
from trellis_api.jobs.models import Attempt, Job, JobTag
from trellis_api.jobs.sweep_names import EXPRESS_SWEEP
from trellis_api.models.models import Model

Direction = Literal["asc", "desc"]


class JobSort(StrEnum):
    """Columns to sort jobs by."""

    CREATED = "created"
    NAME = "name"
    RECIPE = "recipe"
    MODEL = "model"
    DATASET = "dataset"
    STATE = "state"
    DURATION = "duration"
    COST = "cost"
    PROGRESS = "progress"
    STARRED = "starred"
    TAGS = "tags"
    SWEEP = "sweep"
    GROUP = "group"
    METRIC_LAST = "metric_last"
    METRIC_BEST = "metric_best"


BY_METRIC = frozenset({JobSort.METRIC_LAST, JobSort.METRIC_BEST})


@dataclass(frozen=True)
class JobOrder:
    """By what jobs are listed, and from which end; ``metric`` is the key for those sorted by a metric.

    With a grouping they stand in groups, and the order is that within each.
    """

    sort: JobSort | JobField = JobSort.CREATED
    direction: Direction = "desc"
    metric: str | None = None
    grouping: JobGrouping | None = None


@dataclass(frozen=True)
class Position:
    """The last row of a page: its value (None: it has none) and id, and the instant of the first page."""

    value: str | float | datetime | None
    job_id: str
    now: datetime
    #: The key of its group.
    group: str | None = None

    def encode(self, order: JobOrder) -> str:
        """Encode the cursor of the page after this position, valid for this order only."""
        value = self.value.isoformat() if isinstance(self.value, datetime) else self.value
        grouping = None if order.grouping is None else str(order.grouping)
        moment = self.now.isoformat()
        return encode_cursor(
            str(order.sort), order.direction, grouping, self.group, value, self.job_id, moment
        )


def decode_position(cursor: str, order: JobOrder) -> Position:
    """Unpack a cursor; ``InvalidCursor`` for one of another order."""
    sort, direction, grouping, group, value, job_id, moment = decode_cursor(cursor, parts=7)
    asked = (str(order.sort), order.direction, None if order.grouping is None else str(order.grouping))
    if (sort, direction, grouping) != asked or not isinstance(job_id, str):
        raise InvalidCursor("The cursor doesn't match this sort order.")
    if "\x00" in job_id or (group is not None and (not isinstance(group, str) or "\x00" in group)):
        raise InvalidCursor("Invalid cursor.")
    now = _read_instant(moment)
    if order.sort == JobSort.CREATED:
        return Position(_read_instant(value), job_id, now, group)
    expected = str if _has_texts(order.sort) else (int, float)
    if value is not None and not isinstance(value, expected):
        raise InvalidCursor("Invalid cursor.")
    if isinstance(value, str) and "\x00" in value:
        raise InvalidCursor("Invalid cursor.")
    return Position(value, job_id, now, group)


def _has_texts(sort: JobSort | JobField) -> bool:
    return is_text(sort) if isinstance(sort, JobField) else sort in _TEXTS


_TEXTS = frozenset(
    {JobSort.NAME, JobSort.RECIPE, JobSort.MODEL, JobSort.DATASET, JobSort.TAGS, JobSort.SWEEP, JobSort.GROUP}
)


@dataclass(frozen=True)
class Listed:
    """A page of jobs, the cursor of the next, and the number of jobs in each group that is on the page."""

    jobs: list[Job]
    next_cursor: str | None
    groups: list[tuple[str | None, int]] | None


def list_sorted(
    session: Session, statement: Select[Any], *, order: JobOrder, after: Position | None, limit: int
) -> Listed:
    """List a page of the jobs that a statement selects."""
    now = after.now if after else utc_now()
    dialect = session.connection().dialect.name
    value = _express(order, dialect=dialect, now=now)
    group = None if order.grouping is None else express_group(order.grouping, dialect=dialect)
    is_falling = order.direction == "desc"
    identifier: Any = col(Job.id)
    heads: list[Any] = [] if group is None else [group.is_(None), group]
    key = literal(None, String) if group is None else group
    wanted = statement.add_columns(value.label("sort_value"), key.label("group_key")).order_by(
        *heads,
        value.is_(None),
        value.desc() if is_falling else value,
        identifier.desc() if is_falling else identifier,
    )
    if after is not None:
        is_behind = _behind(value, identifier, after, is_falling=is_falling)
        wanted = wanted.where(is_behind if group is None else _behind_group(group, after.group, is_behind))
    rows = session.execute(wanted.limit(limit + 1)).all()
    shown = rows[:limit]
    groups = None
    if order.grouping is not None:
        keys = list(dict.fromkeys(row[2] for row in shown))
        counts = count_groups(session, statement, grouping=order.grouping, keys=keys)
        groups = [(read_value(order.grouping, key), counts.get(key, 0)) for key in keys]
    jobs = [row[0] for row in shown]
    if len(rows) <= limit:
        return Listed(jobs, None, groups)
    last = shown[-1]
    return Listed(jobs, Position(last[1], last[0].id, now, last[2]).encode(order), groups)


def _behind_group(
    group: ColumnElement[Any], after: str | None, is_behind: ColumnElement[bool]
) -> ColumnElement[bool]:
    if after is None:
        return and_(group.is_(None), is_behind)
    return or_(group > after, group.is_(None), and_(group == after, is_behind))


def _behind(
    value: ColumnElement[Any], identifier: ColumnElement[str], after: Position, *, is_falling: bool
) -> ColumnElement[bool]:
    is_next = identifier < after.job_id if is_falling else identifier > after.job_id
    if after.value is None:
        return and_(value.is_(None), is_next)
    is_beyond = value < after.value if is_falling else value > after.value
    return or_(is_beyond, and_(value == after.value, is_next), value.is_(None))


def _express(order: JobOrder, *, dialect: str, now: datetime) -> ColumnElement[Any]:
    match order.sort:
        case JobField():
            return field_order.express(order.sort, dialect=dialect)
        case JobSort.METRIC_LAST:
            return field_order.last_value(order.metric or "")
        case JobSort.METRIC_BEST:
            return field_order.best_value(order.metric or "")
        case JobSort.DURATION:
            return _duration_s(dialect, now)
        case JobSort.COST:
            # One price holds for all: slot-seconds are in the order of their cost.
            return _duration_s(dialect, now) * func.nullif(col(Job.gpus), 0)
        case JobSort.SWEEP:
            return EXPRESS_SWEEP(col(Job.sweep_id))
        case sort:
            found: ColumnElement[Any] = _COLUMNS[sort]
            return found


_LIFE = {state: place for place, state in enumerate(JobState)}
_COLUMNS: dict[JobSort, Any] = {
    JobSort.CREATED: col(Job.created_at),
    JobSort.NAME: func.lower(Job.name),
    JobSort.RECIPE: col(Job.recipe),
    JobSort.MODEL: select(func.lower(Model.name)).where(col(Model.id) == Job.model_id).scalar_subquery(),
    JobSort.DATASET: (
        select(func.lower(Dataset.name)).where(col(Dataset.id) == Job.dataset_id).scalar_subquery()
    ),
    JobSort.GROUP: func.lower(Job.group),
    JobSort.STATE: case(*((col(Job.state) == state, place) for state, place in _LIFE.items())),
    JobSort.PROGRESS: cast(Job.step, Float(53)) / func.nullif(Job.total_steps, 0),
    JobSort.STARRED: case((col(Job.is_starred) == true(), 1), else_=0),
    JobSort.TAGS: select(func.min(JobTag.tag)).where(col(JobTag.job_id) == Job.id).scalar_subquery(),
}


def _duration_s(dialect: str, now: datetime) -> ColumnElement[float | None]:
    """Return the seconds that all attempts ran, up to ``now``; NULL for a job that never started."""
    end = func.coalesce(col(Attempt.finished_at), cast(now, UtcDateTime) if dialect != "sqlite" else now)
    if dialect == "sqlite":
        seconds: Any = (func.julianday(end) - func.julianday(Attempt.started_at)) * 86_400.0
    else:
        seconds = cast(func.extract("epoch", end - col(Attempt.started_at)), Float(53))
    is_own = (col(Attempt.job_id) == Job.id, col(Attempt.started_at).is_not(None))
    return select(func.sum(seconds)).where(*is_own).scalar_subquery()


def _read_instant(text: Any) -> datetime:
    try:
        instant = datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise InvalidCursor("Invalid cursor.") from error
    if instant.tzinfo is None:
        raise InvalidCursor("Invalid cursor.")
    return instant
