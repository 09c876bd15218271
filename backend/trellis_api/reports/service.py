"""Reports: a request is checked and written down; a worker makes the files.

create                                        PENDING
→ trellis_workers/evaluations/write_reports.py   WRITING; Markdown, HTML and PDF beside, then moved into place
→ record_files / record_failure               READY or FAILED
"""

from pathlib import Path

from sqlmodel import Session

from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.core.pagination import Page, cut_page, decode_time_position
from trellis_api.core.settings import Settings
from trellis_api.evaluations import repository as evaluations
from trellis_api.evaluations.errors import EvaluationUnfinished
from trellis_api.reports import repository
from trellis_api.reports.errors import (
    ReportFileMissing,
    ReportNotFound,
    ReportNotRetryable,
    UnknownEvaluation,
)
from trellis_api.reports.folder import report_folder
from trellis_api.reports.models import Report
from trellis_api.reports.presentation import present_all
from trellis_api.reports.schemas import ReportCreate, ReportFormat, ReportProblem, ReportRead, ReportState

_REASON_CHARS = 2000
#: What loses its worker so often is not begun again: it may be what ends the workers.
MAX_ATTEMPTS = 3


def create(session: Session, *, request: ReportCreate) -> Report:
    """Write the request down; ``UnknownEvaluation`` or ``EvaluationUnfinished`` where one has no results."""
    ids = list(dict.fromkeys(request.evaluations))
    for index, evaluation_id in enumerate(ids):
        row = evaluations.find_evaluation(session, evaluation_id=evaluation_id)
        if row is None:
            message = f"Evaluation {evaluation_id} not found."
            issue = {"code": UnknownEvaluation.code, "field": f"evaluations.{index}", "message": message}
            raise UnknownEvaluation(message, [issue])
        if row.results is None:
            raise EvaluationUnfinished(f"'{row.name}' has no results yet.", {"evaluation": row.id})
    asked = request.model_copy(update={"evaluations": ids, "formats": list(dict.fromkeys(request.formats))})
    report = Report(
        id=new_id("rep"),
        name=request.name,
        language=request.language,
        request=asked.model_dump(mode="json"),
        state=ReportState.PENDING.value,
    )
    session.add(report)
    session.flush()
    return report


def get_report(session: Session, *, report_id: str) -> Report:
    """Return the report; ``ReportNotFound`` without one."""
    report = repository.find_report(session, report_id=report_id)
    if report is None:
        raise ReportNotFound(report_id)
    return report


def list_page(
    session: Session, *, evaluation_id: str | None, cursor: str | None, limit: int
) -> Page[ReportRead]:
    """List one page, newest first."""
    before = decode_time_position(cursor) if cursor is not None else None
    rows = repository.list_reports(session, evaluation_id=evaluation_id, before=before, limit=limit + 1)
    shown, next_cursor = cut_page(rows, limit=limit)
    return Page(items=present_all(session, reports=shown), next_cursor=next_cursor)


def locate_file(
    session: Session, settings: Settings, *, report_id: str, kind: ReportFormat
) -> tuple[Report, Path]:
    """Return the report and its file; ``ReportFileMissing`` if there is none, or not yet."""
    report = get_report(session, report_id=report_id)
    path = report_folder(settings, report.id) / file_name(kind)
    if kind not in report.files or not path.is_file():
        problem = report.problems.get(kind, {})
        message = problem.get("message") or f"The report has no {kind} file; it is {report.state}."
        raise ReportFileMissing(message, {"state": report.state, "code": problem.get("code")})
    return report, path


def file_name(kind: ReportFormat) -> str:
    """Return the name of a format's file within the report's folder."""
    return f"report.{kind}"


def retry(session: Session, *, report_id: str) -> Report:
    """Write it again: it has failed, or a format of it has."""
    report = _lock(session, report_id)
    has_all = report.state == ReportState.READY.value and not report.problems
    if has_all or report.state in {ReportState.PENDING.value, ReportState.WRITING.value}:
        raise ReportNotRetryable(f"The report is {report.state}; there is nothing to regenerate.")
    report.attempts = 0
    _move(session, report, ReportState.PENDING)
    return report


def delete(session: Session, *, report_id: str) -> None:
    """Forget the report; a worker removes its files."""
    report = _lock(session, report_id)
    session.delete(report)
    evaluations.add_leftover(session, leftover_id=report_id)


# -- what the worker notes


def begin_writing(session: Session, *, report_id: str) -> Report | None:
    """Take a report; None where it was deleted or is written, or has lost its worker too often."""
    report = repository.lock_report(session, report_id=report_id)
    if report is None or report.state not in {ReportState.PENDING.value, ReportState.WRITING.value}:
        return None
    if report.attempts >= MAX_ATTEMPTS:
        reason = (
            f"The worker died or was restarted {MAX_ATTEMPTS} times while generating the "
            "files. See the workers' log; fewer evaluations or samples need less memory."
        )
        _move(session, report, ReportState.FAILED, reason=reason)
        return None
    report.attempts += 1
    _move(session, report, ReportState.WRITING)
    return report


def record_files(
    session: Session, *, report_id: str, sizes: dict[str, int], problems: list[ReportProblem]
) -> bool:
    """Set READY, with the size in bytes of each format that was made; False if it was deleted meanwhile."""
    report = repository.lock_report(session, report_id=report_id)
    if report is None:
        return False
    report.files = sizes
    report.problems = {each.format: each.model_dump(include={"code", "message"}) for each in problems}
    _move(session, report, ReportState.READY)
    return True


def record_failure(session: Session, *, report_id: str, reason: str) -> None:
    """Set FAILED; a retry writes it again."""
    report = repository.lock_report(session, report_id=report_id)
    if report is not None:
        _move(session, report, ReportState.FAILED, reason=reason)


def _lock(session: Session, report_id: str) -> Report:
    report = repository.lock_report(session, report_id=report_id)
    if report is None:
        raise ReportNotFound(report_id)
    return report


def _move(session: Session, report: Report, state: ReportState, *, reason: str | None = None) -> None:
    report.state, report.state_changed_at = state.value, utc_now()
    report.state_reason = reason[:_REASON_CHARS] if reason else None
    session.add(report)
    session.flush()
