"""Queries on reward files and dry runs."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import delete, update
from sqlmodel import Session, col, or_, select, tuple_
from trellis_contracts.dry_run import DryRunState

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import is_id
from trellis_api.rewards.models import DryRun, SandboxProbe

Position = tuple[datetime, str]
UNFINISHED = (DryRunState.QUEUED, DryRunState.RUNNING)


def find_dry_run(session: Session, *, dry_run_id: str) -> DryRun | None:
    """Return the dry run with this ID; None for anything that is not an ID."""
    return session.get(DryRun, dry_run_id) if is_id(dry_run_id, prefix="dry") else None


def list_dry_runs(session: Session, *, after: Position | None, limit: int) -> Sequence[DryRun]:
    """List dry runs, newest first."""
    query = select(DryRun)
    if after:
        query = query.where(tuple_(col(DryRun.created_at), col(DryRun.id)) < after)
    return session.exec(
        query.order_by(col(DryRun.created_at).desc(), col(DryRun.id).desc()).limit(limit)
    ).all()


def add_dry_run(session: Session, dry_run: DryRun) -> None:
    """Insert a dry run."""
    session.add(dry_run)
    session.flush()


def delete_dry_run(session: Session, *, dry_run_id: str) -> None:
    """Delete the row; the worker that carries it out notices."""
    session.exec(delete(DryRun).where(col(DryRun.id) == dry_run_id))


def forget_old_dry_runs(session: Session, *, kept: int) -> None:
    """Delete all finished ones but the newest."""
    newest = select(DryRun.id).order_by(col(DryRun.created_at).desc()).limit(kept)
    ids = session.exec(newest).all()
    is_finished = col(DryRun.state).not_in(UNFINISHED)
    session.exec(delete(DryRun).where(col(DryRun.id).not_in(ids), is_finished))


def list_waiting_dry_runs(session: Session, *, lost_before: datetime) -> Sequence[str]:
    """List the ids of dry runs to carry out, oldest first, including those whose worker died."""
    is_lost = (col(DryRun.state) == DryRunState.RUNNING) & (col(DryRun.touched_at) < lost_before)
    waits = or_(col(DryRun.state) == DryRunState.QUEUED, is_lost)
    return session.exec(select(DryRun.id).where(waits).order_by(col(DryRun.created_at))).all()


def claim_dry_run(session: Session, *, dry_run_id: str) -> bool:
    """Take a queued dry run; False where another worker has it."""
    now = utc_now()
    claimed = session.exec(
        update(DryRun)
        .where(col(DryRun.id) == dry_run_id, col(DryRun.state) == DryRunState.QUEUED)
        .values(state=DryRunState.RUNNING.value, started_at=now, touched_at=now)
    )
    return claimed.rowcount == 1


def advance_dry_run(session: Session, *, dry_run_id: str, done: int, total: int) -> bool:
    """Note progress and a sign of life; False where it was cancelled or deleted."""
    touched = session.exec(
        update(DryRun)
        .where(col(DryRun.id) == dry_run_id, col(DryRun.state) == DryRunState.RUNNING)
        .values(done=done, total=total, touched_at=utc_now())
    )
    return touched.rowcount == 1


def replace_sandbox_probe(session: Session, probe: SandboxProbe, *, forget_before: datetime) -> None:
    """Keep the newest probe of a machine, and forget machines that were not heard of since."""
    session.exec(delete(SandboxProbe).where(col(SandboxProbe.probed_at) < forget_before))
    session.merge(probe)
    session.flush()


def list_sandbox_problems(session: Session) -> Sequence[str | None]:
    """List what each machine lacks, the last one probed first; None for one that lacks nothing."""
    return session.exec(select(SandboxProbe.problem).order_by(col(SandboxProbe.probed_at).desc())).all()
