"""Metrics of fine-tuning jobs on their way to W&B: in order, each once, and the key only where it is used."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trellis_api.core.ids import new_id
from trellis_api.fine_tuning import events, repository
from trellis_api.fine_tuning.models import FineTuningJob
from trellis_api.fine_tuning.reporting import Report
from trellis_api.jobs import metric_store
from trellis_api.jobs.models import Job
from trellis_contracts.states import JobState
from trellis_workers.fine_tuning import wandb_reports
from trellis_workers.fine_tuning.wandb_run import log_steps

from .conftest import Installation

KEY = "the key of the account"


@pytest.fixture
def installation(install: Callable[..., Installation]) -> Installation:
    return install(TRELLIS_WANDB_API_KEY=KEY)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Report]:
    """What reaches W&B."""
    reports: list[Report] = []

    def note(_job_id: str, report: Report, key: str) -> None:
        assert key == KEY
        reports.append(report)

    monkeypatch.setattr(wandb_reports, "run_wandb", note)
    return reports


def add_job(installation: Installation, state: JobState = JobState.RUNNING) -> tuple[str, Job]:
    job = installation.add_job(state=state, params={"learning_rate": 0.5})
    row = FineTuningJob(
        id=new_id("ftjob").replace("_", "-"),
        job_id=job.id,
        request={
            "model": "tiny",
            "training_file": "file-a",
            "integrations": [{"type": "wandb", "wandb": {"project": "sums", "tags": ["a"]}}],
        },
        model_id="mdl_aaaaaaaaaaaa",
        tuned_name="ft:tiny::a",
        seed=1,
        reports_to="wandb",
    )
    with installation.write() as session:
        session.add(row)
        return row.id, job


def measure(installation: Installation, job: Job, *steps: int) -> None:
    """Figures of these steps, as the run reports them."""
    with installation.write() as session:
        row = session.get(Job, job.id)
        assert row is not None
        metric_store.write(
            session, job=row, metrics=[(step, {"train/loss": 1.0 / (step + 1)}) for step in steps]
        )


def finish(installation: Installation, job: Job) -> None:
    with installation.write() as session:
        row = session.get(Job, job.id)
        row.state = JobState.SUCCEEDED
        session.add(row)


def read(installation: Installation, job_id: str) -> FineTuningJob:
    with installation.read() as session:
        row = repository.find_job(session, job_id=job_id)
    assert row is not None
    return row


def test_each_step_is_sent_once_and_the_newest_waits_for_its_last_figures(
    installation: Installation, sent: list[Report]
) -> None:
    job_id, job = add_job(installation)
    measure(installation, job, 1, 2, 3)
    wandb_reports.send_reports()
    wandb_reports.send_reports()
    measure(installation, job, 4)
    finish(installation, job)
    wandb_reports.send_reports()
    wandb_reports.send_reports()

    assert [[step for step, _ in report.steps] for report in sent] == [[1, 2], [3, 4]]
    assert sent[0].steps[0] == (1, {"train/loss": 0.5})
    assert (sent[0].settings.project, sent[0].config["learning_rate"]) == ("sums", 0.5)
    assert [report.is_last for report in sent] == [False, True]
    assert read(installation, job_id).reported_at is not None


def test_a_failure_is_told_in_the_jobs_events_without_the_key_and_tried_again(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, sent: list[Report]
) -> None:
    job_id, job = add_job(installation, JobState.SUCCEEDED)
    measure(installation, job, 1)
    works = wandb_reports.run_wandb
    monkeypatch.setattr(wandb_reports, "run_wandb", lambda *_: f"{KEY} is not valid")

    wandb_reports.send_reports()

    row = read(installation, job_id)
    assert row.report_error == "*** is not valid"
    with installation.read() as session:
        told = events.list_page(session, row, after=None, limit=50).data
    warned = [event.message for event in told if event.level == "warn"]
    assert warned == ["Metrics can't be sent to Weights & Biases: *** is not valid"]
    assert len({event.id for event in told}) == len(told)
    monkeypatch.setattr(wandb_reports, "run_wandb", works)
    wandb_reports.send_reports()
    assert (len(sent), read(installation, job_id).report_error) == (1, None)


def test_without_a_key_nothing_is_sent(install: Callable[..., Installation], sent: list[Report]) -> None:
    installation = install()
    _, job = add_job(installation, JobState.SUCCEEDED)
    measure(installation, job, 1)

    wandb_reports.send_reports()

    assert sent == []


class Run:
    """A run of W&B's."""

    def __init__(self) -> None:
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.is_finished = False

    def log(self, values: dict[str, float], *, step: int) -> None:
        self.logged.append((step, values))

    def finish(self) -> None:
        self.is_finished = True


class Package:
    """The package, as far as it is used."""

    def __init__(self) -> None:
        self.run, self.asked = Run(), dict[str, Any]()

    def init(self, **asked: Any) -> Run:
        self.asked = asked
        return self.run

    def Settings(self, **chosen: Any) -> dict[str, Any]:
        return chosen


def order(folder: Path) -> dict[str, Any]:
    return {
        "run": {"project": "sums", "id": "ftjob-a"},
        "config": {"recipe": "sft"},
        "steps": [[1, {"train/loss": 0.5}], [2, {"train/loss": 0.25}]],
        "folder": str(folder),
    }


def test_all_orders_of_a_job_go_to_one_run_and_nothing_of_the_machine(tmp_path: Path) -> None:
    package = Package()

    log_steps(order(tmp_path), package)

    assert (package.asked["id"], package.asked["resume"]) == ("ftjob-a", "allow")
    assert package.asked["settings"]["console"] == "off"
    assert package.run.logged == [(1, {"train/loss": 0.5}), (2, {"train/loss": 0.25})]
    assert package.run.is_finished


@pytest.mark.slow
def test_the_real_package_takes_an_order_offline(tmp_path: Path) -> None:
    pytest.importorskip("wandb")

    done = subprocess.run(
        [sys.executable, "-m", "trellis_workers.fine_tuning.wandb_run"],
        input=json.dumps(order(tmp_path)),
        env={**os.environ, "WANDB_MODE": "offline", "WANDB_API_KEY": "x" * 40},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert list(tmp_path.glob("wandb/offline-run-*-ftjob-a/run-ftjob-a.wandb"))
