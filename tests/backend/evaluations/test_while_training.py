"""Checkpoints that their job wants measured: when, how long they are kept, and what their scores lead to."""

import random
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import select
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.jobs import repository as jobs
from trellis_api.jobs import service
from trellis_api.jobs.checkpoints import service as checkpoints
from trellis_api.jobs.evaluating import due, repository, scores
from trellis_api.jobs.evaluating.models import DueState
from trellis_api.jobs.events import service as events
from trellis_api.jobs.exports import service as exports
from trellis_api.jobs.metrics import query as metric_query
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.jobs.metrics.downsampling import reduce_points
from trellis_api.jobs.metrics.models import ROLLUP_STEPS, metric_rollups, metric_series
from trellis_api.models.models import Model
from trellis_contracts.evaluation import BenchmarkResult, Score, VerdictCounts
from trellis_contracts.states import JobState

START = datetime(2026, 1, 1, tzinfo=UTC)
KEY = "eval/gsm8k/flexible"


def ask(**changes: Any) -> dict[str, Any]:
    """What stands in a job's row."""
    order = {"benchmark": "gsm8k", "label": "gsm8k", "limit": 10}
    return {"benchmarks": [order], "every_steps": 10, "at_end": True, **changes}


def result(value: float, *, label: str = "gsm8k", metric: str = "flexible") -> BenchmarkResult:
    scores_ = [Score(metric=metric, value=value, n=10), Score(metric="strict", value=value / 2, n=10)]
    return BenchmarkResult(
        label=label, benchmark="gsm8k", headline=metric, scores=scores_, counts=VerdictCounts(), problems=10
    )


class Run:
    """A launched training that reports, and whose checkpoints are measured."""

    def __init__(self, client: TestClient, settings: Settings, database: Database, launched: Any) -> None:
        self.job_id = launched.job_id
        self.settings = settings
        self._client, self._database, self._launched = client, database, launched
        self._sequence, self._attempt, self._headers = 0, 1, launched.headers

    def report(self, *events: dict[str, Any]) -> None:
        self._sequence += 1
        response = self._client.post(
            f"/api/v1/ingest/jobs/{self.job_id}/batches",
            json={"attempt": self._attempt, "sequence": self._sequence, "events": list(events)},
            headers=self._headers,
        )
        assert response.status_code == 200, response.text

    def save(self, *steps: int, minute: float | None = None, **values: float) -> None:
        """As a trainer does: progress, the checkpoint, then the metrics of the step."""
        told: list[dict[str, Any]] = []
        for step in steps:
            time = (START + timedelta(minutes=step if minute is None else minute)).isoformat()
            folder = self.settings.checkpoint_dir(self.job_id) / f"global_step_{step}"
            folder.mkdir(parents=True, exist_ok=True)
            told += [
                {"kind": "progress", "time": time, "phase": "training", "step": step, "total_steps": 999},
                {"kind": "checkpoint", "time": time, "step": step, "path": str(folder), "size_bytes": 8},
                {"kind": "metrics", "time": time, "step": step, "values": {"loss": 1.0, **values}},
            ]
        self.report(*told)

    def due(self) -> dict[int, str]:
        """States by step."""
        with self._database.read() as session:
            return {row.step: row.state for row in repository.list_due(session, job_id=self.job_id)}

    def score(self, step: int, value: float, **more: Any) -> bool:
        """The checkpoint's evaluation has succeeded: what the sweep does then."""
        with self._database.write() as session:
            job = service.get_locked_job(session, job_id=self.job_id)
            row = repository.find_due(session, job_id=self.job_id, step=step)
            assert row is not None
            has_stopped = scores.record(session, job=job, due=row, results=[result(value, **more)])
            exports.queue_promised(session, job=job, settings=self.settings)
            return has_stopped

    def fail(self, step: int) -> None:
        with self._database.write() as session:
            job = service.get_locked_job(session, job_id=self.job_id)
            row = repository.find_due(session, job_id=self.job_id, step=step)
            assert row is not None
            scores.close(session, job=job, due=row, state=DueState.FAILED, problem="It did not work.")

    def end(self, state: JobState = JobState.SUCCEEDED) -> None:
        """What the workers do when the run is over."""
        with self._database.write() as session:
            assert service.settle(session, job_id=self.job_id, attempt=self._attempt, state=state)
            job = service.get_locked_job(session, job_id=self.job_id)
            due.note_end(session, job=job, last=jobs.list_checkpoints(session, job_id=job.id)[0])
            checkpoints.apply_retention(session, job=job)
            exports.queue_promised(session, job=job, settings=self.settings)

    def resume(self, step: int) -> None:
        """A new attempt from a checkpoint, launched."""
        with self._database.write() as session:
            service.resume(
                session, job_id=self.job_id, data_root=self.settings.data_root, checkpoint_step=step
            )
            claim = service.claim_for_launch(session, job_id=self.job_id)
        assert claim is not None
        self._attempt, self._sequence = claim.job.attempt, 0
        self._headers = {"Authorization": f"Bearer {claim.token}"}

    def read(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client.get(f"/api/v1/jobs/{self.job_id}").json()
        return found

    def checkpoints(self, **query: str) -> dict[int, dict[str, Any]]:
        found = self._client.get(f"/api/v1/jobs/{self.job_id}/checkpoints", params=query).json()["items"]
        return {each["step"]: each for each in found}

    def left(self) -> list[int]:
        """Steps that have not made room."""
        return sorted(step for step, each in self.checkpoints().items() if not each["is_pruned"])

    def job(self) -> dict[str, Any]:
        found: dict[str, Any] = self._client.get(f"/api/v1/jobs/{self.job_id}").json()
        return found

    def curve(self) -> dict[int, float]:
        found = self._client.get(f"/api/v1/jobs/{self.job_id}/metrics", params={"keys": KEY}).json()["series"]
        return dict(zip(found[0]["steps"], found[0]["values"], strict=True)) if found else {}


@pytest.fixture
def start(
    client: TestClient, settings: Settings, database: Database, make_launched: Callable[..., Any]
) -> Callable[..., Run]:
    return lambda **job: Run(client, settings, database, make_launched(**{"evaluate": ask(), **job}))


# -- which checkpoints


@pytest.mark.parametrize(
    ("saved", "expected"),
    [
        ((5, 10, 15, 20), [10, 20]),
        ((7, 14, 21, 28, 35), [14, 21, 35]),
        ((50, 51, 60), [50, 60]),
        ((3, 9), []),
    ],
)
def test_the_first_checkpoint_at_or_behind_each_multiple_is_measured(
    start: Callable[..., Run], saved: tuple[int, ...], expected: list[int]
) -> None:
    run = start()

    run.save(*saved)

    assert list(run.due()) == expected


def test_minutes_count_from_the_start_and_from_the_last_one(
    start: Callable[..., Run], database: Database
) -> None:
    run = start(evaluate=ask(every_steps=None, every_minutes=10))
    run.report()
    with database.write() as session:
        service.get_locked_job(session, job_id=run.job_id).started_at = START

    for step, minute in ((1, 4), (2, 11), (3, 19), (4, 21.5), (5, 40)):
        run.save(step, minute=minute)

    assert list(run.due()) == [2, 4, 5]


def test_a_checkpoint_that_is_reported_again_is_measured_once(start: Callable[..., Run]) -> None:
    run = start()
    run.save(10)
    run.score(10, 0.5)

    run.save(10)

    assert run.due() == {10: "recorded"}


def test_too_many_that_wait_let_the_next_ones_go_and_never_the_last(start: Callable[..., Run]) -> None:
    run = start(params={"keep_checkpoints": 1})

    run.save(*range(10, 120, 10))

    states = list(run.due().values())
    assert states == ["waiting"] * due.MOST_OPEN + ["skipped"] * 3
    assert run.left() == [*range(10, 90, 10), 110]
    assert "waiting" in run.checkpoints()[100]["evaluation"]["problem"]
    assert run.job()["evaluate"]["skipped"] == 3
    run.end()
    assert run.due()[110] == "waiting"


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.STOPPED])
def test_the_last_checkpoint_is_measured_at_the_end_and_after_a_stop(
    start: Callable[..., Run], state: JobState
) -> None:
    run = start()
    run.save(10, 17)

    run.end(state)

    assert run.due() == {10: "waiting", 17: "waiting"}
    assert run.checkpoints()[17]["evaluation"]["is_final"]


@pytest.mark.parametrize(
    ("wanted", "state"), [(ask(at_end=False), JobState.SUCCEEDED), (ask(), JobState.FAILED)]
)
def test_no_last_one_where_it_was_not_asked_for_or_the_run_failed(
    start: Callable[..., Run], wanted: dict[str, Any], state: JobState
) -> None:
    run = start(evaluate=wanted)
    run.save(10, 17)

    run.end(state)

    assert list(run.due()) == [10]


def test_a_job_that_asks_for_nothing_has_nothing_measured(start: Callable[..., Run]) -> None:
    run = start(evaluate=None)

    run.save(10)
    run.end()

    assert run.due() == {}
    assert run.checkpoints()[10]["evaluation"] is None


# -- how long they are kept


def test_what_waits_to_be_measured_is_kept_and_then_makes_room(
    start: Callable[..., Run], client: TestClient
) -> None:
    run = start(params={"keep_checkpoints": 1}, evaluate=ask(best_by=None))

    run.save(10, 15, 20, 25)

    assert run.left() == [10, 20, 25]
    assert "evaluating" in run.checkpoints()[10]["kept_because"]
    refused = client.delete(f"/api/v1/jobs/{run.job_id}/checkpoints/10")
    assert (refused.status_code, refused.json()["details"]) == (409, {"reason": "evaluating"})
    run.fail(10)
    assert run.left() == [20, 25]
    assert run.checkpoints()[10]["evaluation"]["problem"] == "It did not work."
    run.score(20, 0.5)
    assert run.left() == [25]


def test_a_late_score_makes_an_old_checkpoint_the_best(start: Callable[..., Run]) -> None:
    best_by = {"label": "gsm8k", "metric": "flexible", "mode": "max"}
    run = start(
        params={"keep_checkpoints": 1},
        evaluate=ask(best_by=best_by),
        keep_best_by={"metric": KEY, "mode": "max"},
    )
    run.save(10, 20, 30, 35)
    run.score(20, 0.4)
    run.score(30, 0.3)

    run.score(10, 0.9)

    assert run.left() == [10, 35]
    found = run.checkpoints()
    assert [step for step, each in found.items() if each["is_best"]] == [10]
    assert [each["metrics"].get(KEY) for each in found.values()] == [None, 0.3, 0.4, 0.9]


def test_a_score_is_of_its_checkpoint_alone(start: Callable[..., Run]) -> None:
    run = start()
    run.save(10, 15, 20, **{"val-core/dataset/acc/mean@1": 0.25})

    run.score(10, 0.5)

    found = run.checkpoints(best_by=KEY)
    assert KEY not in found[15]["metrics"]
    assert KEY not in found[20]["metrics"]
    assert found[10]["is_best"]


def test_a_rule_by_the_headline_takes_its_name_from_the_first_scores(start: Callable[..., Run]) -> None:
    run = start(evaluate=ask(best_by={"label": "gsm8k", "metric": None, "mode": "max"}))
    run.save(10, 20)
    assert run.read()["keep_best_by"] is None

    run.score(10, 0.5)

    assert run.read()["keep_best_by"] == {"metric": KEY, "mode": "max"}
    assert run.read()["evaluate"]["best_by"]["metric"] == "flexible"


def test_a_rule_by_a_score_that_the_benchmark_does_not_give_is_told(start: Callable[..., Run]) -> None:
    run = start(evaluate=ask(early_stop={"label": "gsm8k", "metric": "bleu", "patience": 1}))
    run.save(10)

    run.score(10, 0.5)

    problem = run.checkpoints()[10]["evaluation"]["problem"]
    assert "'bleu'" in problem
    assert "flexible, strict" in problem


def test_the_promised_export_waits_for_the_scores_that_choose_it(
    start: Callable[..., Run], client: TestClient
) -> None:
    run = start(params={"keep_checkpoints": 1}, export_as={"name": "the best", "best_by": KEY, "mode": None})
    run.save(10, 20, 25)
    run.score(20, 0.2)

    run.end()

    assert run.read()["export_as"]["job"] is None
    run.score(10, 0.8)
    assert run.left() == [10, 25]
    assert run.read()["export_as"]["job"] is None  # the last one is still to be measured
    run.score(25, 0.1)
    promised = run.read()["export_as"]
    assert promised["problem"] is None
    export = client.get(f"/api/v1/jobs/{promised['job']['id']}").json()["export"]
    assert export["step"] == 10


# -- curves


def test_late_scores_are_where_they_belong_whatever_rollups_have_been_made(
    start: Callable[..., Run], database: Database, client: TestClient
) -> None:
    steps = [10, 63, 64, 127, 128, 200, 640]
    run = start(evaluate=ask(every_steps=1, at_end=False))
    run.save(*steps)
    with database.write() as session:
        job = service.get_locked_job(session, job_id=run.job_id)
        metric_store.write(
            session, job=job, metrics=[(step, {"loss": float(step)}) for step in range(1, 1_000)]
        )
    late = random.Random(3).sample(steps, len(steps))

    for step in late:
        run.score(step, step / 1000)

    assert run.curve() == {step: step / 1000 for step in steps}
    check_rollups(database, run.job_id)
    short = client.get(f"/api/v1/jobs/{run.job_id}/metrics", params={"keys": KEY, "max_points": 10})
    series = short.json()["series"][0]
    assert series["total_points"] == len(steps)


def test_scores_after_a_resume_from_an_earlier_step_follow_the_new_way(
    start: Callable[..., Run], database: Database
) -> None:
    run = start()
    run.save(*range(5, 135, 5))
    for step in (10, 20, 60, 70):
        run.score(step, 0.5)
    run.end(JobState.STOPPED)

    run.resume(20)

    assert run.due() == {10: "recorded", 20: "recorded"}
    assert run.curve() == {10: 0.5, 20: 0.5}
    assert run.checkpoints()[60]["metrics"][KEY] == 0.5  # of the way that is not continued
    run.save(*range(25, 105, 5))
    assert run.due()[60] == "waiting"
    run.score(60, 0.75)
    run.score(30, 0.7)
    assert run.curve() == {10: 0.5, 20: 0.5, 30: 0.7, 60: 0.75}
    assert run.checkpoints()[60]["metrics"][KEY] == 0.75
    check_rollups(database, run.job_id)


def test_scores_are_streamed_to_the_page(
    start: Callable[..., Run], database: Database, client: TestClient
) -> None:
    run = start()
    run.save(10)

    run.score(10, 0.5)

    with database.read() as session:
        found = events.list_events(session, job_id=run.job_id, after=0, limit=100)
        told = [event.payload for event in found if event.kind == "metrics"]
    assert told[-1] == {"step": 10, "values": {KEY: 0.5, "eval/gsm8k/strict": 0.25}, "non_finite": {}}
    keys = {each["key"] for each in client.get(f"/api/v1/jobs/{run.job_id}/metric-keys").json()}
    assert {KEY, "eval/gsm8k/strict", "loss"} <= keys


def check_rollups(database: Database, job_id: str) -> None:
    """Every complete bucket is summed up exactly as its points say."""
    with database.read() as session:
        job = service.get_job(session, job_id=job_id)
        connection = session.connection()
        series = dict(
            connection.execute(
                select(metric_series.c.key, metric_series.c.id).where(metric_series.c.job_id == job_id)
            ).all()
        )
        for curve in metric_query.read_curves(session, job=job, keys=None, max_points=20_000):
            kept = connection.execute(
                select(metric_rollups)
                .where(metric_rollups.c.series_id == series[curve.key])
                .order_by(metric_rollups.c.bucket)
            ).all()
            complete = [
                point for point in curve.points if point[0] // ROLLUP_STEPS < job.metric_step // ROLLUP_STEPS
            ]
            assert [tuple(row) for row in kept] == expected_rows(complete, series[curve.key])


def expected_rows(points: Sequence[Any], series_id: int) -> list[tuple[Any, ...]]:
    buckets = reduce_points(points, width=ROLLUP_STEPS)
    return [tuple(metric_store.as_row(bucket, series_id=series_id).values()) for bucket in buckets]


# -- early stop


def test_a_plateau_stops_the_training_and_says_why(start: Callable[..., Run]) -> None:
    run = start(evaluate=ask(early_stop={"label": "gsm8k", "metric": "flexible", "patience": 2}))
    run.save(10, 20, 30)

    assert not run.score(10, 0.5)
    assert not run.score(20, 0.4)
    assert run.score(30, 0.5)

    job = run.read()
    assert job["state"] == "stopping"
    stopped = job["evaluate"]["stopped"]
    assert (stopped["best_step"], stopped["last_step"], stopped["count"]) == (10, 30, 2)
    assert "gsm8k/flexible" in stopped["reason"]["en"]
    assert "提前停止" in stopped["reason"]["zh"]
    run.end(JobState.STOPPED)
    assert run.read()["evaluate"]["stopped"] == stopped


def test_a_plateau_behind_what_is_still_measured_stops_nothing_yet(start: Callable[..., Run]) -> None:
    run = start(evaluate=ask(early_stop={"label": "gsm8k", "patience": 2}))
    run.save(10, 20, 30, 40)
    run.score(10, 0.5)

    assert not run.score(30, 0.4)
    assert not run.score(40, 0.4)

    assert run.score(20, 0.9)
    assert run.read()["evaluate"]["stopped"]["best_step"] == 20


def test_a_stopped_training_that_is_resumed_gets_its_patience_again(start: Callable[..., Run]) -> None:
    run = start(evaluate=ask(early_stop={"label": "gsm8k", "metric": "flexible", "patience": 1}))
    run.save(10, 20)
    run.score(10, 0.5)
    assert run.score(20, 0.5)
    run.end(JobState.STOPPED)

    run.resume(20)
    run.save(30)

    assert run.read()["evaluate"]["stopped"] is None
    assert run.score(30, 0.5)


def test_a_training_that_ended_before_the_stop_reached_it_was_not_stopped(start: Callable[..., Run]) -> None:
    run = start(evaluate=ask(early_stop={"label": "gsm8k", "metric": "flexible", "patience": 1}))
    run.save(10, 20)
    run.score(10, 0.5)
    assert run.score(20, 0.5)

    run.end(JobState.SUCCEEDED)

    assert run.read()["state"] == "succeeded"
    assert run.read()["evaluate"]["stopped"] is None


def test_failed_evaluations_neither_fail_nor_stop_the_training(start: Callable[..., Run]) -> None:
    run = start(evaluate=ask(early_stop={"label": "gsm8k", "metric": "flexible", "patience": 1}))
    run.save(10, 20, 30)

    for step in (10, 20, 30):
        run.fail(step)

    job = run.read()
    assert (job["state"], job["failure"], job["evaluate"]["stopped"]) == ("running", None, None)


# -- what a training may not do meanwhile


def test_a_job_whose_checkpoint_is_measured_is_not_deleted(
    start: Callable[..., Run], client: TestClient
) -> None:
    run = start()
    run.save(10)
    run.end(JobState.FAILED)

    refused = client.delete(f"/api/v1/jobs/{run.job_id}")

    assert (refused.status_code, refused.json()["error"]) == (409, "checkpoint_in_use")
    run.fail(10)
    assert client.delete(f"/api/v1/jobs/{run.job_id}").status_code == 204


# -- asking for it


@pytest.fixture
def request_body(model: Model, dataset: Dataset) -> dict[str, Any]:
    return {"name": "measured", "recipe": "grpo", "model": model.id, "dataset": dataset.id, "evaluate": ask()}


def test_a_job_says_what_it_is_measured_on(client: TestClient, request_body: dict[str, Any]) -> None:
    best_by = {"label": "gsm8k", "metric": "flexible", "mode": "max"}
    request_body["evaluate"] |= {"best_by": best_by, "benchmarks": [{"benchmark": "gsm8k"}]}

    created = client.post("/api/v1/jobs", json=request_body)

    assert created.status_code == 201, created.text
    job = created.json()
    assert job["evaluate"]["benchmarks"][0]["label"] == "gsm8k"
    assert job["evaluate"]["best_by"] == best_by
    assert job["keep_best_by"] == {"metric": KEY, "mode": "max"}
    copied = client.post(f"/api/v1/jobs/{job['id']}/clone", json={}).json()
    assert (copied["evaluate"], copied["keep_best_by"]) == (job["evaluate"], job["keep_best_by"])


def test_a_dataset_to_measure_on_is_pinned_to_its_version(
    client: TestClient, request_body: dict[str, Any], dataset: Dataset
) -> None:
    order = {"benchmark": "custom", "dataset": dataset.id, "scorer": {"kind": "exact"}}
    request_body["evaluate"] = ask(benchmarks=[order])

    job = client.post("/api/v1/jobs", json=request_body).json()

    version = client.get(f"/api/v1/datasets/{dataset.id}/versions").json()["items"][0]["id"]
    assert job["evaluate"]["benchmarks"][0]["version"] == version


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"every_steps": None, "at_end": False}, "no evaluations are scheduled"),
        ({"every_minutes": 5}, "every_steps or every_minutes"),
        ({"early_stop": {"label": "other"}}, "no benchmark has the label other"),
        ({"best_by": {"label": "other"}}, "no benchmark has the label other"),
        ({"early_stop": {"label": "gsm8k"}, "every_steps": None}, "early_stop requires every_steps"),
        ({"benchmarks": []}, "at least 1 item"),
    ],
)
def test_an_order_that_contradicts_itself_is_refused(
    client: TestClient, request_body: dict[str, Any], changes: dict[str, Any], message: str
) -> None:
    request_body["evaluate"] = ask(**changes)

    refused = client.post("/api/v1/jobs", json=request_body)

    assert refused.status_code == 422
    assert message in refused.json()["message"]


def test_what_cannot_be_measured_is_said_before_anything_runs(
    client: TestClient, request_body: dict[str, Any]
) -> None:
    order = {"benchmark": "custom", "dataset": "ds_zzzzzzzzzzzz", "scorer": {"kind": "exact"}}
    request_body["evaluate"] = ask(benchmarks=[order])
    request_body["params"] = {"save_every": 0}

    refused = client.post("/api/v1/jobs", json=request_body)
    preview = client.post("/api/v1/jobs/preview", json=request_body).json()

    assert (refused.status_code, refused.json()["error"]) == (422, "invalid_order")
    issue = ("dataset_not_found", "evaluate.benchmarks.0.dataset")
    assert issue in {(each["code"], each["field"]) for each in refused.json()["details"]}
    assert issue in {(each["code"], each["field"]) for each in preview["errors"]}
    warned = {(each["code"], each["field"]) for each in preview["warnings"]}
    assert ("no_checkpoints_to_evaluate", "params.save_every") in warned


def test_one_rule_tells_the_best_checkpoint(client: TestClient, request_body: dict[str, Any]) -> None:
    request_body["evaluate"] = ask(best_by={"label": "gsm8k"})
    request_body["keep_best_by"] = {"metric": "val/loss"}

    refused = client.post("/api/v1/jobs", json=request_body)

    assert refused.status_code == 422
    assert "not both" in refused.json()["message"]
