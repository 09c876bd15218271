"""Queries on sweeps."""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, func
from sqlalchemy.orm import Mapped
from sqlmodel import Session, col, select, tuple_, update
from trellis_contracts.states import ACTIVE, JobState

from trellis_api.core.ids import is_id
from trellis_api.jobs.metrics.models import metric_points, metric_series
from trellis_api.jobs.models import Job
from trellis_api.names.resolve import Kind, find_filter_id
from trellis_api.sweeps.models import Sweep, SweepRun
from trellis_api.sweeps.states import UNDER_WAY

PREFIX = "swp"
SWEEPS = Kind(Sweep, PREFIX, "sweeps")
Position = tuple[datetime, str]


def find_sweep(session: Session, *, sweep_id: str) -> Sweep | None:
    """Return the sweep with this ID; None for anything that is not an ID."""
    return session.get(Sweep, sweep_id) if is_id(sweep_id, prefix=PREFIX) else None


def find_sweep_id(session: Session, called: str | None) -> str | None:
    """Return the ID of the sweep that a list's filter names; raises ``AmbiguousName`` if several are."""
    return find_filter_id(session, SWEEPS, called, field="sweep")


def lock_sweep(session: Session, *, sweep_id: str) -> Sweep | None:
    """Lock the sweep until the transaction ends and return it; runs change only under this lock."""
    if not is_id(sweep_id, prefix=PREFIX):
        return None
    return session.get(Sweep, sweep_id, with_for_update=True, populate_existing=True)


def list_sweeps(session: Session, *, before: Position | None, limit: int) -> Sequence[Sweep]:
    """List sweeps, newest first."""
    query = select(Sweep)
    if before:
        query = query.where(tuple_(col(Sweep.created_at), col(Sweep.id)) < before)
    return session.exec(query.order_by(col(Sweep.created_at).desc(), col(Sweep.id).desc()).limit(limit)).all()


def list_runs(session: Session, *, sweep_id: str) -> list[SweepRun]:
    """List a sweep's runs in order, in their current state."""
    query = select(SweepRun).where(SweepRun.sweep_id == sweep_id).order_by(col(SweepRun.index))
    return list(session.exec(query.execution_options(populate_existing=True)))


def map_runs(session: Session, *, sweep_ids: Iterable[str]) -> dict[str, list[SweepRun]]:
    """Return the runs of several sweeps, by sweep ID."""
    query = select(SweepRun).where(col(SweepRun.sweep_id).in_(list(sweep_ids)))
    found: dict[str, list[SweepRun]] = {}
    for run in session.exec(query.order_by(col(SweepRun.index))):
        found.setdefault(run.sweep_id, []).append(run)
    return found


def map_trials(session: Session, *, job_ids: Iterable[str]) -> dict[str, tuple[str, int]]:
    """Map each job that is a run of a sweep to its sweep and trial."""
    columns = select(SweepRun.job_id, SweepRun.sweep_id, SweepRun.trial)
    found = session.exec(columns.where(col(SweepRun.job_id).in_(list(job_ids))))
    return {job_id: (sweep_id, trial) for job_id, sweep_id, trial in found if job_id is not None}


def list_unsettled(session: Session) -> Sequence[str]:
    """List the ids of sweeps that are under way, or whose runs a user has resumed; oldest first."""
    running = select(Job.sweep_id).where(col(Job.sweep_id).is_not(None), col(Job.state).in_(ACTIVE))
    # A run that a person resumed has ended since the last look.
    ended = (
        select(SweepRun.sweep_id)
        .join(Job, col(Job.id) == SweepRun.job_id)
        .where(
            col(SweepRun.is_over).is_(False),
            col(SweepRun.is_paused).is_(False) | col(Job.state).in_([JobState.SUCCEEDED, JobState.FAILED]),
        )
    )
    is_unsettled = (
        col(Sweep.state).in_([each.value for each in UNDER_WAY])
        | col(Sweep.id).in_(running)
        | col(Sweep.id).in_(ended)
    )
    return session.exec(select(Sweep.id).where(is_unsettled).order_by(col(Sweep.created_at))).all()


def list_active_documents(session: Session) -> list[tuple[str, str, dict[str, Any]]]:
    """List id, name and request of the sweeps that may begin another run."""
    query = select(Sweep.id, Sweep.name, Sweep.document).where(col(Sweep.is_active).is_(True))
    return [(each, name, dict(document)) for each, name, document in session.exec(query.order_by(Sweep.name))]


def map_names(session: Session, sweep_ids: Iterable[str]) -> dict[str, str]:
    """Return the names of those sweeps that exist, by ID."""
    return dict(session.exec(select(Sweep.id, Sweep.name).where(col(Sweep.id).in_(list(sweep_ids)))).all())


def express_name(sweep_id: Mapped[str | None]) -> ColumnElement[Any]:
    """Return by what the sweep of this id stands in sorted lists: sweeps of the same name stay apart."""
    name = func.lower(Sweep.name) + " " + col(Sweep.id)
    return select(name).where(col(Sweep.id) == sweep_id).scalar_subquery()


def read_points(session: Session, *, job_id: str, key: str, after: int = -1) -> list[tuple[int, float]]:
    """Read a job's points of one metric after a step; a value that is not a number is NaN."""
    points, series = metric_points.c, metric_series.c
    statement = (
        select(points.step, points.value)
        .join(metric_series, points.series_id == series.id)
        .where(series.job_id == job_id, series.key == key, points.step > after)
        .order_by(points.step)
    )
    rows = session.connection().execute(statement)
    return [(step, float("nan") if value is None else float(value)) for step, value in rows]


def list_keys(session: Session, *, job_id: str) -> list[str]:
    """List the metrics that a job has reported."""
    statement = select(metric_series.c.key).where(metric_series.c.job_id == job_id)
    return sorted(row[0] for row in session.connection().execute(statement))


def delete_sweep(session: Session, sweep: Sweep) -> None:
    """Delete it and, by cascade, its runs; their jobs stay and belong to no sweep."""
    session.exec(update(Job).where(col(Job.sweep_id) == sweep.id).values(sweep_id=None))
    session.delete(sweep)
    session.flush()
