"""One look at the database finds the sweeps that have something to do; an idle platform has none."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import pytest
from sqlalchemy import JSON
from sqlalchemy.exc import OperationalError
from sqlmodel import AutoString, Session, SQLModel, create_engine
from trellis_api.benchmarks.models import BenchmarkInstall
from trellis_api.core.columns import UtcDateTime, utc_now
from trellis_api.data_tasks.models import DataTask
from trellis_api.environments.models import Environment, EnvironmentCall
from trellis_api.fine_tuning.models import FineTuningJob
from trellis_api.job_pipelines.models import JobPipeline
from trellis_api.jobs.evaluating.models import DueEvaluation
from trellis_api.jobs.models import EVALUATE, EXPORT, SERVE, Job
from trellis_api.reports.models import Report
from trellis_api.rewards.models import DryRun
from trellis_api.sweeps.models import Sweep
from trellis_api.transfers.models import Transfer
from trellis_api.workflows.models import WorkflowFile
from trellis_contracts import tasks
from trellis_contracts.states import JobState
from trellis_workers.core.configuration import SWEEPS, build_configuration
from trellis_workers.due import tasks as due_tasks
from trellis_workers.due.find import find_due

RUNNING = JobState.RUNNING.value
LONG_AGO = datetime.fromisoformat("2024-01-01T00:00:00+00:00")
#: A row that is work for each sweep.
WORK: dict[str, tuple[type[SQLModel], dict[str, Any]]] = {
    tasks.LAUNCH_QUEUED: (Job, {"state": JobState.QUEUED.value}),
    tasks.RECONCILE: (Job, {"state": RUNNING}),
    tasks.FINISH_EXPORTS: (Job, {"state": RUNNING, "kind": EXPORT}),
    tasks.FINISH_EVALUATIONS: (Job, {"state": RUNNING, "kind": EVALUATE}),
    tasks.STOP_IDLE_ENDPOINTS: (Job, {"state": RUNNING, "kind": SERVE}),
    tasks.INSTALL_BENCHMARKS: (BenchmarkInstall, {"state": "pending"}),
    tasks.QUEUE_EVALUATIONS: (DueEvaluation, {"state": "waiting"}),
    tasks.WRITE_REPORTS: (Report, {"state": "pending"}),
    tasks.RUN_DRY_RUNS: (DryRun, {"state": "queued"}),
    tasks.RUN_DATA_TASKS: (DataTask, {"state": "running", "kind": "import", "touched_at": LONG_AGO}),
    tasks.RUN_PREVIEWS: (DataTask, {"state": "queued", "kind": "preview"}),
    tasks.MAKE_ENVIRONMENTS: (Environment, {"state": "queued"}),
    tasks.CALL_TOOLS: (EnvironmentCall, {"state": "queued"}),
    tasks.INSTALL_WORKFLOWS: (WorkflowFile, {"state": "queued"}),
    tasks.ADVANCE_JOB_PIPELINES: (JobPipeline, {"is_active": True}),
    tasks.ADVANCE_FINE_TUNING: (FineTuningJob, {}),
    tasks.ADVANCE_SWEEPS: (Sweep, {"state": "running"}),
    tasks.RUN_TRANSFERS: (Transfer, {"state": "queued"}),
}


def filler(column: Any) -> Any:
    """Something for a column that does not matter."""
    if isinstance(column.type, UtcDateTime):
        return utc_now()
    if isinstance(column.type, AutoString):
        return "x"
    return {} if isinstance(column.type, JSON) else column.type.python_type(1)


def add_row(platform: Any, model: type[SQLModel], values: dict[str, Any]) -> None:
    """A row of which only these values matter; what it refers to is not there."""
    needed = {
        column.name: filler(column)
        for column in model.__table__.columns  # type: ignore[attr-defined]
        if column.name not in values and not column.nullable and column.default is None
    }
    engine = create_engine(platform.database.url)  # SQLite checks no references unless it is told to
    with Session(engine) as session:
        session.add(model(**needed, **values))
        session.commit()
    engine.dispose()


def test_an_idle_platform_has_nothing_to_do(install: Callable[..., Any]) -> None:
    assert find_due(install().read) == []


@pytest.mark.parametrize("task", SWEEPS)
def test_work_is_found(install: Callable[..., Any], task: str) -> None:
    platform = install()
    model, values = WORK[task]
    add_row(platform, model, values)

    assert task in find_due(platform.read)


def test_a_paused_fine_tuning_job_is_no_work(install: Callable[..., Any]) -> None:
    platform = install()
    add_row(platform, FineTuningJob, {"paused_at": LONG_AGO})

    assert find_due(platform.read) == []


def test_a_look_that_fails_does_not_hide_the_work_of_the_others(
    install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    add_row(platform, *WORK[tasks.WRITE_REPORTS])

    def fail(*_given: Any, **_options: Any) -> Any:
        raise OperationalError("SELECT", {}, Exception("the table is gone"))

    monkeypatch.setattr("trellis_workers.due.find.jobs.list_holding_slots", fail)

    assert tasks.WRITE_REPORTS in find_due(platform.read)


def test_what_is_due_is_sent_and_nothing_else(
    install: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    platform.add_job()
    sent: list[str] = []
    monkeypatch.setattr(due_tasks.app, "send_task", lambda name, **_options: sent.append(name))

    due_tasks.look_for_work()

    assert sent == [tasks.LAUNCH_QUEUED]


def test_an_idle_platform_is_looked_at_often_and_swept_rarely(install: Callable[..., Any]) -> None:
    install()

    schedule = {entry["task"]: entry["schedule"] for entry in build_configuration()["beat_schedule"].values()}

    assert (schedule.pop(tasks.LOOK_FOR_WORK), schedule.pop(tasks.SAMPLE_MACHINES)) == (0.5, 10)
    assert set(SWEEPS) <= set(schedule)
    assert min(schedule.values()) >= 30
