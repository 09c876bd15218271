"""Writes the files of reports: Markdown, HTML, and a PDF that Chromium prints of the HTML.

They are made beside and moved into place together: a report's folder is whole or not there. A lost
message costs nothing: beat calls ``write_reports``, and since one worker at a time holds the lock, a
report that says WRITING was left by one that died. Without Chromium the PDF alone is missing.
"""

import logging
import shutil
from pathlib import Path

from trellis_api.core.errors import means_no_room
from trellis_api.reports import repository, service
from trellis_api.reports.folder import report_folder
from trellis_api.reports.schemas import ReportCreate, ReportFormat, ReportProblem
from trellis_evaluation.problem import EvaluationProblem
from trellis_evaluation.reports.document import ReportInput

from trellis_workers.core.lock import try_lock
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write
from trellis_workers.evaluations.report_content import CannotWrite, gather

logger = logging.getLogger(__name__)
_LOCK_FILE = "run/write-reports.lock"


def write_reports() -> None:
    """Write every report that waits, one after the other."""
    with read() as session:
        waiting = repository.list_unwritten(session)
    if not waiting:
        return
    with try_lock(get_settings().data_root / _LOCK_FILE) as has_lock:
        if has_lock:
            for report_id in waiting:
                _write(report_id)


def _write(report_id: str) -> None:
    settings = get_settings()
    with write() as session:
        report = service.begin_writing(session, report_id=report_id)
    if report is None:
        return
    staging = report_folder(settings, f".staging-{report_id}")
    try:
        with read() as session:
            content = gather(session, settings, report=report)
        sizes, problems = _render(staging, content, ReportCreate.model_validate(report.request))
        _move_into_place(staging, report_folder(settings, report_id))
    except CannotWrite as error:
        _fail(report_id, str(error))
    except OSError as error:
        _fail(
            report_id, "The disk is full." if means_no_room(error) else f"Writing failed: {error.strerror}."
        )
    except Exception:  # the edge of the process: one report must not hold up the others
        logger.exception("report %s could not be written", report_id)
        _fail(report_id, "The report could not be created; see the workers' log for the reason.")
    else:
        with write() as session:
            is_wanted = service.record_files(session, report_id=report_id, sizes=sizes, problems=problems)
        if not is_wanted:  # deleted meanwhile, and its folder perhaps before it was there
            shutil.rmtree(report_folder(settings, report_id), ignore_errors=True)
        logger.info("report %s: %s", report_id, ", ".join(sizes))
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def _render(
    staging: Path, content: ReportInput, request: ReportCreate
) -> tuple[dict[str, int], list[ReportProblem]]:
    """Render the files, and return the sizes in bytes of those made and the problems of the others."""
    # Matplotlib and Jinja take seconds to load, which no other task needs.
    from trellis_evaluation.reports.pdf import render_pdf
    from trellis_evaluation.reports.rendering import render_html, render_markdown

    shutil.rmtree(staging, ignore_errors=True)  # of a worker that died
    staging.mkdir(parents=True)
    problems: list[ReportProblem] = []
    if "md" in request.formats:
        _locate(staging, "md").write_text(render_markdown(content, request.language), encoding="utf-8")
    if {"html", "pdf"} & set(request.formats):
        _locate(staging, "html").write_text(render_html(content, request.language), encoding="utf-8")
    if "pdf" in request.formats:
        try:
            render_pdf(_locate(staging, "html"), _locate(staging, "pdf"))
        except EvaluationProblem as problem:
            logger.warning("the PDF of '%s' is missing: %s", content.title, problem)
            problems.append(ReportProblem(format="pdf", code=problem.code, message=str(problem)))
    if "html" not in request.formats:
        _locate(staging, "html").unlink(missing_ok=True)
    made = {kind: _locate(staging, kind) for kind in request.formats}
    return {kind: path.stat().st_size for kind, path in made.items() if path.is_file()}, problems


def _locate(folder: Path, kind: ReportFormat) -> Path:
    return folder / service.file_name(kind)


def _move_into_place(staging: Path, folder: Path) -> None:
    """Replace the earlier files; they are moved away first, as only an empty folder can be replaced."""
    doomed = folder.with_name(f".replaced-{folder.name}")
    shutil.rmtree(doomed, ignore_errors=True)
    if folder.exists():
        folder.rename(doomed)
    staging.rename(folder)
    shutil.rmtree(doomed, ignore_errors=True)


def _fail(report_id: str, reason: str) -> None:
    logger.warning("report %s could not be written: %s", report_id, reason)
    with write() as session:
        service.record_failure(session, report_id=report_id, reason=reason)
