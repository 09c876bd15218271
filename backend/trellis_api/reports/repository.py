"""Queries on reports."""

from collections.abc import Sequence
from datetime import datetime

from sqlalchemy import String, cast
from sqlmodel import Session, col, select, tuple_

from trellis_api.core.ids import is_id
from trellis_api.reports.models import Report
from trellis_api.reports.schemas import ReportState

_UNWRITTEN = (ReportState.PENDING.value, ReportState.WRITING.value)


def find_report(session: Session, *, report_id: str) -> Report | None:
    """Return the report with this ID; None for anything that is not an ID."""
    return session.get(Report, report_id) if is_id(report_id, prefix="rep") else None


def lock_report(session: Session, *, report_id: str) -> Report | None:
    """Lock the report until the transaction ends and return its current state."""
    if not is_id(report_id, prefix="rep"):
        return None
    return session.get(Report, report_id, with_for_update=True, populate_existing=True)


def list_reports(
    session: Session, *, evaluation_id: str | None, before: tuple[datetime, str] | None, limit: int
) -> Sequence[Report]:
    """List reports, newest first; all, or those that include an evaluation."""
    query = select(Report)
    if evaluation_id is not None:
        # As JSON text ids stand in quotes; an id has none itself.
        query = query.where(cast(col(Report.request), String).contains(f'"{evaluation_id}"'))
    if before is not None:
        query = query.where(tuple_(col(Report.created_at), col(Report.id)) < before)
    return session.exec(
        query.order_by(col(Report.created_at).desc(), col(Report.id).desc()).limit(limit)
    ).all()


def list_unwritten(session: Session) -> Sequence[str]:
    """List the ids of reports that wait for a worker or whose worker died, oldest first."""
    is_unwritten = col(Report.state).in_(_UNWRITTEN)
    return session.exec(select(Report.id).where(is_unwritten).order_by(col(Report.created_at))).all()
