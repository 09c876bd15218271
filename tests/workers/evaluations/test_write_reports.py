"""Reports are written whole or not at all, again after a worker that was killed, and without Chromium too."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from trellis_api.core.columns import utc_now
from trellis_api.evaluations import history
from trellis_api.evaluations import repository as evaluations
from trellis_api.evaluations.models import Evaluation
from trellis_api.evaluations.orders import EvaluationRequest
from trellis_api.jobs.models import EVALUATE
from trellis_api.reports import repository, service
from trellis_api.reports.folder import report_folder
from trellis_api.reports.models import Report
from trellis_api.reports.schemas import ReportCreate
from trellis_contracts import tasks
from trellis_contracts.evaluation import Gsm8kOrder
from trellis_contracts.states import JobState
from trellis_evaluation.reports.pdf import find_chromium
from trellis_testing.evaluations import leave_results
from trellis_workers.core.configuration import build_configuration
from trellis_workers.evaluations.tidy import tidy_evaluations
from trellis_workers.evaluations.write_reports import write_reports

#: Is killed when the HTML has been made and nothing is in place yet.
WRITE_AND_DIE = """
import os, signal
from trellis_evaluation.reports import rendering

whole = rendering.render_html

def render_and_die(*args):
    whole(*args)
    os.kill(os.getpid(), signal.SIGKILL)

rendering.render_html = render_and_die
from trellis_workers.evaluations.write_reports import write_reports
write_reports()
"""


def add_evaluation(platform: Any, number: int, scores: tuple[float, ...]) -> str:
    """A finished evaluation of the model, with samples; its id."""
    job = platform.add_job(kind=EVALUATE, state=JobState.SUCCEEDED, finished_at=utc_now(), dataset_id=None)
    request = EvaluationRequest(benchmarks=[Gsm8kOrder(label="gsm8k")])
    row = Evaluation(
        id=f"ev_aaaaaaaaaaa{'abcdef'[number]}",
        job_id=job.id,
        name=f"evaluation {number}",
        target_kind="model",
        target_model_id="mdl_aaaaaaaaaaaa",
        target_name="tiny <b>model</b>",
        request=request.model_dump(mode="json"),
        recorded_at=utc_now(),
    )
    result = leave_results(platform.settings, row, scores=scores)
    row.results = [each.model_dump(mode="json") for each in result.benchmarks]
    row.manifest = result.manifest
    with platform.write() as session:
        evaluations.add_evaluation(session, row)
    return row.id


def ask(platform: Any, *ids: str, **changes: Any) -> str:
    request = ReportCreate(
        **{"name": "A report", "evaluations": list(ids), "formats": ["md", "html"], **changes}
    )
    with platform.write() as session:
        return service.create(session, request=request).id


def read(platform: Any, report_id: str) -> Report:
    with platform.read() as session:
        report = repository.find_report(session, report_id=report_id)
    assert report is not None
    return report


def list_files(platform: Any, report_id: str) -> list[str]:
    folder = report_folder(platform.settings, report_id)
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def list_left(platform: Any) -> list[str]:
    """What lies where reports lie and is none."""
    return [path.name for path in (platform.settings.data_root / "reports").iterdir() if path.name[0] == "."]


def test_a_report_compares_shows_examples_and_escapes(install: Callable[..., Any]) -> None:
    platform = install()
    first = add_evaluation(platform, 0, (1.0, 0.0, 0.0, 1.0))
    second = add_evaluation(platform, 1, (1.0, 1.0, 0.0, 1.0))
    report_id = ask(platform, first, second, language="zh")

    write_reports()
    write_reports()

    report = read(platform, report_id)
    assert (report.state, report.problems, sorted(report.files)) == ("ready", {}, ["html", "md"])
    assert list_files(platform, report_id) == ["report.html", "report.md"]
    assert list_left(platform) == []
    folder = report_folder(platform.settings, report_id)
    page, text = (folder / "report.html").read_text(), (folder / "report.md").read_text()
    assert report.files["html"] == (folder / "report.html").stat().st_size
    assert "tiny &lt;b&gt;model&lt;/b&gt;" in page
    assert "<b>model" not in page
    for shown in ("gsm8k", "evaluation 1", "75.0%", "+25.0"):
        assert shown in text


@pytest.mark.skipif(find_chromium() is None, reason="there is no Chromium to print with")
def test_a_pdf_is_printed_and_the_html_goes_where_it_was_not_asked_for(install: Callable[..., Any]) -> None:
    platform = install()
    report_id = ask(platform, add_evaluation(platform, 0, (1.0, 0.0)), formats=["pdf"])

    write_reports()

    report = read(platform, report_id)
    assert (report.state, report.problems) == ("ready", {})
    assert list_files(platform, report_id) == ["report.pdf"]
    assert (report_folder(platform.settings, report_id) / "report.pdf").read_bytes().startswith(b"%PDF")


def test_without_chromium_the_pdf_alone_is_missing_until_it_is_there(
    install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    report_id = ask(platform, add_evaluation(platform, 0, (1.0, 0.0)), formats=["md", "html", "pdf"])
    monkeypatch.setenv("PATH", "/nowhere")

    write_reports()

    report = read(platform, report_id)
    assert report.state == "ready"
    assert report.problems["pdf"]["code"] == "chromium_missing"
    assert list_files(platform, report_id) == ["report.html", "report.md"]


@pytest.mark.faults
def test_a_worker_that_was_killed_leaves_nothing_behind(install: Callable[..., Any]) -> None:
    platform = install()
    report_id = ask(platform, add_evaluation(platform, 0, (1.0, 0.0)))

    killed = subprocess.run(
        [sys.executable, "-c", WRITE_AND_DIE], env={**os.environ, **platform.environment}, timeout=120
    )
    assert killed.returncode == -signal.SIGKILL
    assert read(platform, report_id).state == "writing"
    assert list_files(platform, report_id) == []
    write_reports()

    assert read(platform, report_id).state == "ready"
    assert list_files(platform, report_id) == ["report.html", "report.md"]
    assert list_left(platform) == []


def test_a_report_that_ends_its_workers_is_given_up_until_it_is_asked_for_again(
    install: Callable[..., Any],
) -> None:
    platform = install()
    report_id = ask(platform, add_evaluation(platform, 0, (1.0, 0.0)), formats=["md"])
    for _ in range(service.MAX_ATTEMPTS):
        with platform.write() as session:
            assert service.begin_writing(session, report_id=report_id) is not None

    write_reports()

    report = read(platform, report_id)
    assert report.state == "failed"
    # Every take-up counts, and a worker that was restarted has not died of anything.
    assert f"restarted {service.MAX_ATTEMPTS} times" in str(report.state_reason)
    assert list_files(platform, report_id) == []

    with platform.write() as session:
        service.retry(session, report_id=report_id)
    write_reports()

    assert read(platform, report_id).state == "ready"


def test_a_deleted_evaluation_fails_its_report_and_no_other(install: Callable[..., Any]) -> None:
    platform = install()
    gone, stays = add_evaluation(platform, 0, (1.0,)), add_evaluation(platform, 1, (1.0, 0.0))
    broken, whole = ask(platform, gone, stays), ask(platform, stays, formats=["md"])
    with platform.write() as session:
        session.delete(evaluations.find_evaluation(session, evaluation_id=gone))

    write_reports()

    report = read(platform, broken)
    assert report.state == "failed"
    assert gone in str(report.state_reason)
    assert list_files(platform, broken) == []
    assert read(platform, whole).state == "ready"


def test_what_nobody_foresaw_fails_one_report(
    install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    report_id = ask(platform, add_evaluation(platform, 0, (1.0,)))
    monkeypatch.setattr(history, "read_history", lambda *_args, **_rest: 1 / 0)

    write_reports()

    assert "workers' log" in str(read(platform, report_id).state_reason)


def test_a_report_written_again_takes_the_place_of_the_first(install: Callable[..., Any]) -> None:
    platform = install()
    report_id = ask(platform, add_evaluation(platform, 0, (1.0, 0.0)), formats=["md"])
    write_reports()
    with platform.write() as session:
        service.record_failure(session, report_id=report_id, reason="once")
        service.retry(session, report_id=report_id)

    write_reports()

    assert read(platform, report_id).state == "ready"
    assert list_files(platform, report_id) == ["report.md"]
    assert list_left(platform) == []


def test_the_files_of_a_deleted_report_go(install: Callable[..., Any]) -> None:
    platform = install()
    report_id = ask(platform, add_evaluation(platform, 0, (1.0, 0.0)), formats=["md"])
    write_reports()

    with platform.write() as session:
        service.delete(session, report_id=report_id)
    tidy_evaluations()

    assert list_files(platform, report_id) == []


def test_the_sweep_is_scheduled(install: Callable[..., Any]) -> None:
    install()

    scheduled = {each["task"] for each in build_configuration()["beat_schedule"].values()}

    assert tasks.WRITE_REPORTS in scheduled
