"""Turns rows of reports into what clients read."""

from collections.abc import Sequence
from typing import cast

from sqlmodel import Session

from trellis_api.core.references import NamedReference
from trellis_api.evaluations.repository import map_evaluation_names
from trellis_api.reports.models import Report
from trellis_api.reports.schemas import (
    ReportCreate,
    ReportFile,
    ReportFormat,
    ReportProblem,
    ReportRead,
    ReportState,
)


def present(session: Session, *, report: Report) -> ReportRead:
    """Present one report."""
    return present_all(session, reports=[report])[0]


def present_all(session: Session, *, reports: Sequence[Report]) -> list[ReportRead]:
    """Present several reports, with one query for the names of their evaluations."""
    asked = {report.id: ReportCreate.model_validate(report.request) for report in reports}
    ids = {each for request in asked.values() for each in request.evaluations}
    names = map_evaluation_names(session, evaluation_ids=ids)
    return [_present(report, asked[report.id], names) for report in reports]


def _present(report: Report, request: ReportCreate, names: dict[str, str]) -> ReportRead:
    state = ReportState(report.state)
    problems = [
        ReportProblem(format=cast(ReportFormat, kind), **problem) for kind, problem in report.problems.items()
    ]
    return ReportRead(
        id=report.id,
        name=report.name,
        language=request.language,
        evaluations=[NamedReference(id=each, name=names.get(each)) for each in request.evaluations],
        formats=request.formats,
        samples=request.samples,
        state=state,
        state_reason=report.state_reason,
        files=[
            ReportFile(format=kind, size_bytes=report.files[kind])
            for kind in request.formats
            if kind in report.files
        ],
        problems=problems,
        can_retry=state == ReportState.FAILED or (state == ReportState.READY and bool(problems)),
        created_at=report.created_at,
    )
