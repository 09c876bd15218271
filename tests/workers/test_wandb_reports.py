"""Metrics of jobs on their way to W&B: in order, each once, and the key only where it is used."""

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.fine_tuning import events
from trellis_api.fine_tuning.models import FineTuningJob
from trellis_api.jobs import service
from trellis_api.jobs.logs import store as log_store
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.jobs.models import Checkpoint, Job
from trellis_api.jobs.reporting import service as reporting
from trellis_api.jobs.reporting.models import JobReport
from trellis_api.jobs.reporting.schemas import ReportTo, WandbSettings
from trellis_api.jobs.reporting.service import Report
from trellis_contracts.states import JobState
from trellis_testing.waiting import wait_until
from trellis_testing.wandb_server import ENTITY, serve_wandb
from trellis_workers.core.lock import try_lock
from trellis_workers.jobs import tasks, wandb_reports
from trellis_workers.jobs.wandb_reports import Sent
from trellis_workers.jobs.wandb_run import log_steps

from .conftest import Installation

KEY = "the key of the account"


@pytest.fixture
def installation(install: Callable[..., Installation]) -> Installation:
    return install(TRELLIS_WANDB_API_KEY=KEY)


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Report]:
    """What reaches W&B."""
    reports: list[Report] = []

    def note(report: Report, key: str, _timeout_s: float) -> Sent:
        assert key == KEY
        reports.append(report)
        return Sent(url="https://wandb.local/sums")

    monkeypatch.setattr(wandb_reports, "run_wandb", note)
    return reports


def add_job(installation: Installation, state: JobState = JobState.RUNNING, **wandb: Any) -> tuple[str, Job]:
    job = installation.add_job(state=state, params={"learning_rate": 0.5})
    with installation.write() as session:
        wanted = ReportTo(wandb=WandbSettings(project="sums", tags=["a"], **wandb))
        reporting.begin(session, job=job, wanted=wanted)
    return job.id, job


def measure(installation: Installation, job: Job, *steps: int) -> None:
    """Figures of these steps, as the run reports them."""
    with installation.write() as session:
        row = session.get(Job, job.id)
        assert row is not None
        metric_store.write(
            session, job=row, metrics=[(step, {"train/loss": 1.0 / (step + 1)}) for step in steps]
        )


def change(installation: Installation, job_id: str, **values: Any) -> None:
    with installation.write() as session:
        row = session.get(JobReport, job_id)
        assert row is not None
        for name, value in values.items():
            setattr(row, name, value)
        session.add(row)


def finish(installation: Installation, job: Job) -> None:
    with installation.write() as session:
        row = session.get(Job, job.id)
        row.state, row.finished_at = JobState.SUCCEEDED, utc_now()
        session.add(row)


def read(installation: Installation, job_id: str) -> JobReport:
    with installation.read() as session:
        row = reporting.find_report(session, job_id=job_id)
    assert row is not None
    return row


def read_log(installation: Installation, job: Job) -> list[str]:
    """What the platform wrote to the job's log."""
    with installation.read() as session:
        row = session.get(Job, job.id)
        assert row is not None
        return [line.text for line in log_store.read_last(session, job=row, limit=50)]


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
    assert read(installation, job_id).done_at is not None
    assert read(installation, job_id).url == "https://wandb.local/sums"


def test_a_failure_is_told_in_the_jobs_log_once_without_the_key_and_tried_again(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, sent: list[Report]
) -> None:
    job_id, job = add_job(installation, JobState.SUCCEEDED)
    measure(installation, job, 1)
    works = wandb_reports.run_wandb
    monkeypatch.setattr(wandb_reports, "run_wandb", lambda *_: Sent(f"{KEY} is not valid"))

    for _ in range(2):
        change(installation, job_id, due_at=utc_now())
        wandb_reports.send_reports()

    assert read(installation, job_id).problem == "*** is not valid"
    warning = "Warning: metrics can't be sent to Weights & Biases: *** is not valid"
    assert read_log(installation, job) == [warning]
    monkeypatch.setattr(wandb_reports, "run_wandb", works)
    change(installation, job_id, due_at=utc_now())
    wandb_reports.send_reports()
    assert (len(sent), read(installation, job_id).problem) == (1, None)
    assert read_log(installation, job) == [warning, "Metrics reach Weights & Biases again."]
    with installation.read() as session:
        assert KEY not in str(session.get_one(JobReport, job_id)) + str(session.get_one(Job, job_id))


def test_a_fine_tuning_job_tells_of_it_in_its_events(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    job_id, job = add_job(installation)
    measure(installation, job, 1, 2)
    monkeypatch.setattr(wandb_reports, "run_wandb", lambda *_: Sent("no route to host"))
    row = FineTuningJob(
        id=new_id("ftjob").replace("_", "-"),
        job_id=job_id,
        request={"model": "tiny", "training_file": "file-a"},
        model_id="mdl_aaaaaaaaaaaa",
        tuned_name="ft:tiny::a",
        seed=1,
    )
    with installation.write() as session:
        session.add(row)

    wandb_reports.send_reports()

    with installation.read() as session:
        told = events.list_page(session, row, after=None, limit=50).data
    warned = [event.message for event in told if event.level == "warn"]
    assert warned == ["Metrics can't be sent to Weights & Biases: no route to host"]
    assert len({event.id for event in told}) == len(told)


def test_workers_without_a_key_send_nothing_and_warn(
    install: Callable[..., Installation], sent: list[Report]
) -> None:
    installation = install()
    _, job = add_job(installation, JobState.SUCCEEDED)
    measure(installation, job, 1)

    wandb_reports.send_reports()

    assert sent == []
    assert "set TRELLIS_WANDB_API_KEY for them too" in "".join(read_log(installation, job))


def test_without_a_network_a_finished_job_is_kept_as_one_run_and_no_key_is_needed(
    install: Callable[..., Installation], sent: list[Report]
) -> None:
    installation = install(TRELLIS_WANDB_OFFLINE="true")
    job_id, job = add_job(installation, JobState.SUCCEEDED)
    _, running = add_job(installation, JobState.RUNNING)
    measure(installation, job, 1, 2)
    measure(installation, running, 1, 2)

    for _ in range(2):
        wandb_reports.send_reports()

    kept = installation.settings.data_root / wandb_reports.KEPT_FOLDER
    (run,) = kept.glob("*/wandb/offline-run-*/*.wandb")
    assert run.stem == f"run-{job_id}"
    assert b"train/loss" in run.read_bytes()
    assert sent == []
    done, waiting = read(installation, job_id), read(installation, running.id)
    assert (done.sent_step, done.problem, done.done_at is not None) == (2, None, True)
    assert (waiting.sent_step, waiting.problem, waiting.done_at) == (None, None, None)


def test_one_worker_at_a_time_sends_reports(installation: Installation, sent: list[Report]) -> None:
    _, job = add_job(installation, JobState.SUCCEEDED)
    measure(installation, job, 1)

    with try_lock(installation.settings.data_root / "run" / "wandb.lock"):
        tasks.send_reports()

    assert sent == []
    tasks.send_reports()
    assert len(sent) == 1


@pytest.fixture
def fails(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Jobs whose metrics were refused."""
    tried: list[str] = []

    def refuse(report: Report, *_: Any) -> Sent:
        tried.append(report.run_id)
        return Sent("no route to host")

    monkeypatch.setattr(wandb_reports, "run_wandb", refuse)
    return tried


def test_a_job_that_fails_waits_twice_as_long_each_time_and_an_hour_at_most(
    installation: Installation, fails: list[str]
) -> None:
    job_id, job = add_job(installation, JobState.SUCCEEDED)
    measure(installation, job, 1)
    waits: list[int] = []

    for _ in range(8):
        change(installation, job_id, due_at=utc_now())
        wandb_reports.send_reports()
        wandb_reports.send_reports()
        due_at = read(installation, job_id).due_at
        assert due_at is not None
        waits.append(round((due_at - utc_now()) / timedelta(minutes=1)))

    assert waits == [1, 2, 4, 8, 16, 32, 60, 60]
    assert fails == [job_id] * 8


@pytest.mark.parametrize(("hours", "tries"), [(5, 2), (7, 1)])
def test_sending_is_given_up_six_hours_after_the_jobs_end(
    installation: Installation, fails: list[str], hours: int, tries: int
) -> None:
    job_id, job = add_job(installation)
    measure(installation, job, 1)
    finish(installation, job)
    with installation.write() as session:
        session.get(Job, job.id).finished_at = utc_now() - timedelta(hours=hours)

    wandb_reports.send_reports()
    change(installation, job_id, due_at=utc_now())
    wandb_reports.send_reports()

    assert len(fails) == tries
    assert read(installation, job_id).problem == "no route to host"


def test_a_sweep_that_has_used_its_time_leaves_the_other_jobs_to_the_next(
    installation: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = [add_job(installation) for _ in range(2)]
    for _, job in jobs:
        measure(installation, job, 1, 2)
    now_s, tried = [1000.0], list[tuple[str, float]]()

    def take_long(report: Report, _key: str, timeout_s: float) -> Sent:
        tried.append((report.run_id, timeout_s))
        now_s[0] += 40
        return Sent()

    monkeypatch.setattr(wandb_reports, "run_wandb", take_long)
    monkeypatch.setattr(wandb_reports, "time", SimpleNamespace(monotonic=lambda: now_s[0]))
    first, second = (job_id for job_id, _ in jobs)

    wandb_reports.send_reports()
    assert tried == [(first, 60.0)]
    measure(installation, jobs[0][1], 3)
    wandb_reports.send_reports()
    assert tried == [(first, 60.0), (second, 60.0)]


def test_a_resumed_job_goes_on_in_its_run_and_sends_no_step_twice(
    installation: Installation, sent: list[Report]
) -> None:
    job_id, job = add_job(installation, JobState.STOPPED)
    measure(installation, job, 1, 2, 3, 4)
    folder = installation.settings.checkpoint_dir(job.id) / "global_step_2"
    folder.mkdir(parents=True)
    with installation.write() as session:
        session.add(
            Checkpoint(job_id=job.id, step=2, attempt=1, path=str(folder), size_bytes=1, created_at=utc_now())
        )
    wandb_reports.send_reports()
    assert read(installation, job_id).done_at is not None

    with installation.write() as session:
        service.resume(session, job_id=job.id, data_root=installation.settings.data_root)
    with installation.write() as session:  # a worker that was still sending the first attempt
        reporting.note_sent(session, job_id=job_id, report=sent[0], url=None)
    measure(installation, job, 3, 4, 5)
    finish(installation, job)
    wandb_reports.send_reports()

    sent_steps = [(report.run_id, [step for step, _ in report.steps]) for report in sent]
    assert sent_steps == [(job_id, [1, 2, 3, 4]), (job_id, [5])]
    assert read(installation, job_id).done_at is not None


def test_runs_of_a_sweep_are_a_group_with_names_of_their_own(
    installation: Installation, sent: list[Report]
) -> None:
    jobs = [add_job(installation, JobState.SUCCEEDED, name="first look")[1] for _ in range(2)]
    with installation.write() as session:
        session.get_one(Job, jobs[0].id).sweep_id = "swp_aaaaaaaaaaaa"
    for job in jobs:
        measure(installation, job, 1)

    wandb_reports.send_reports()

    named = {report.run_id: (report.name, report.group) for report in sent}
    assert named == {jobs[0].id: (jobs[0].name, "first look"), jobs[1].id: ("first look", None)}


REPORT = Report(
    settings=WandbSettings(project="sums"),
    run_id="job-a",
    name="first",
    group="all",
    attempt=2,
    config={},
    steps=[(1, {"train/loss": 0.5})],
    is_last=False,
)


def stand_in(monkeypatch: pytest.MonkeyPatch, folder: Path, *lines: str) -> None:
    """Another module in the place of the one that calls the package; it starts in ``folder``."""
    code = [
        "import json, os, pathlib, subprocess, sys, time",
        f"here = pathlib.Path({str(folder)!r})",
        *lines,
    ]
    (folder / "wandb_stand_in.py").write_text("\n".join(code))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setattr(wandb_reports, "_MODULE", "wandb_stand_in")


def test_the_process_that_sends_has_no_other_secret_and_leaves_no_folder(
    installation: Installation, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    monkeypatch.setenv("WANDB_BASE_URL", "http://wandb.local")
    stand_in(
        monkeypatch,
        tmp_path,
        "order = json.load(sys.stdin)",
        "(pathlib.Path(order['folder']) / 'run-1').mkdir()",
        "(here / 'found.json').write_text(json.dumps([order, dict(os.environ)]))",
        "sys.exit('it is full')",
    )

    problem = wandb_reports.run_wandb(REPORT, KEY, 60).problem

    order, environment = json.loads((tmp_path / "found.json").read_text())
    assert problem == "it is full"
    assert order["run"] == {"project": "sums", "id": "job-a", "name": "first", "group": "all"}
    assert order["steps"] == [[1, {"train/loss": 0.5}]]
    assert (environment["WANDB_API_KEY"], environment["WANDB_BASE_URL"]) == (KEY, "http://wandb.local")
    assert not {"HF_TOKEN", "TRELLIS_WANDB_API_KEY"} & environment.keys()
    assert list((installation.settings.data_root / "run" / "wandb").iterdir()) == []


@pytest.mark.faults
@pytest.mark.usefixtures("installation")
def test_a_process_that_takes_too_long_is_ended_with_all_that_it_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stand_in(
        monkeypatch,
        tmp_path,
        "child = subprocess.Popen(['sleep', '600'])",
        "(here / 'pid').write_text(str(child.pid))",
        "time.sleep(600)",
    )

    problem = wandb_reports.run_wandb(REPORT, KEY, 5).problem

    assert problem == "no answer within 5 s"
    pid = int((tmp_path / "pid").read_text())
    wait_until(lambda: not is_running(pid), 10, "what it started has ended")


def is_running(pid: int) -> bool:
    """Whether there is a process, and it is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def test_what_a_killed_worker_left_is_removed(installation: Installation, sent: list[Report]) -> None:
    leftover = installation.settings.data_root / "run" / "wandb" / "left" / "wandb"
    leftover.mkdir(parents=True)

    wandb_reports.send_reports()

    assert (leftover.exists(), sent) == (False, [])


class Run:
    """A run of W&B's."""

    def __init__(self) -> None:
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.is_finished = False
        self.url: str | None = "https://wandb.local/sums"

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
        "run": {"project": "sums", "id": "job-a"},
        "config": {"recipe": "sft"},
        "steps": [[1, {"train/loss": 0.5}], [2, {"train/loss": 0.25}]],
        "folder": str(folder),
    }


def test_all_orders_of_a_job_go_to_one_run_and_nothing_of_the_machine(tmp_path: Path) -> None:
    package = Package()

    log_steps(order(tmp_path), package)

    assert (package.asked["id"], package.asked["resume"]) == ("job-a", "allow")
    assert package.asked["settings"]["console"] == "off"
    assert package.run.logged == [(1, {"train/loss": 0.5}), (2, {"train/loss": 0.25})]
    assert package.run.is_finished
    assert (tmp_path / "url").read_text() == package.run.url


@pytest.mark.slow
def test_the_real_package_logs_a_job_and_its_resumed_attempt_to_one_run(
    install: Callable[..., Installation], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("wandb")
    key = "0123456789" * 4
    installation = install(TRELLIS_WANDB_API_KEY=key)
    job_id, job = add_job(installation, JobState.STOPPED)

    with serve_wandb() as server:
        monkeypatch.setenv("WANDB_BASE_URL", server.url)
        measure(installation, job, 1, 2)
        wandb_reports.send_reports()
        with installation.write() as session:
            service.resume(session, job_id=job_id, data_root=installation.settings.data_root)
        measure(installation, job, 1, 2, 3)
        finish(installation, job)
        wandb_reports.send_reports()

    (run,) = server.runs.values()
    assert [(line["_step"], line["train/loss"]) for line in run.history] == [(1, 0.5), (2, 1 / 3), (3, 0.25)]
    assert (run.asked["project"], run.asked["displayName"], run.asked["tags"]) == ("sums", job.name, ["a"])
    assert json.loads(run.asked["config"])["learning_rate"]["value"] == 0.5
    # Nothing of the machine.
    assert (run.asked["host"], run.asked["program"]) == ("trellis", "trellis")
    assert server.keys == {key}
    row = read(installation, job_id)
    assert (row.url, row.problem) == (f"{server.url}/{ENTITY}/sums/runs/{job_id}", None)
    assert row.done_at is not None
