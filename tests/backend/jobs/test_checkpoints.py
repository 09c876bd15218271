"""Checkpoints: their metrics, which is the best, which are kept, and which make room."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.jobs import repository, service
from trellis_api.jobs.checkpoints import service as checkpoints
from trellis_api.jobs.metrics import direction
from trellis_api.models.models import Model
from trellis_contracts.states import JobState

from tests.backend.conftest import Launched

ACCURACY = "val-core/dataset/acc/mean@1"


def spell(key: str) -> str:
    """A metric's name from that of an argument."""
    return key.replace("accuracy", ACCURACY).replace("__", "/")


class Run:
    """A launched job that reports."""

    def __init__(self, client: TestClient, settings: Settings, launched: Any) -> None:
        self.job_id = launched.job_id
        self.url = f"/api/v1/jobs/{launched.job_id}/checkpoints"
        self._client, self._settings, self._launched = client, settings, launched
        self._sequence = 0

    @property
    def attempt(self) -> int:
        return int(self._launched.attempt)

    def continue_with(self, launched: Launched) -> None:
        """Report as another attempt from here on."""
        self._launched, self._sequence = launched, 0

    def report(self, *events: dict[str, Any]) -> None:
        self._sequence += 1
        response = self._client.post(
            f"/api/v1/ingest/jobs/{self.job_id}/batches",
            json={"attempt": self._launched.attempt, "sequence": self._sequence, "events": list(events)},
            headers=self._launched.headers,
        )
        assert response.status_code == 200, response.text

    def step(self, step: int, *, saves: bool = True, **values: float) -> None:
        """As a trainer does: progress, the checkpoint, then the metrics of the step."""
        time = utc_now().isoformat()
        self.report({"kind": "progress", "time": time, "phase": "training", "step": step, "total_steps": 99})
        if saves:
            folder = self._settings.checkpoint_dir(self.job_id) / f"global_step_{step}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "weights").write_bytes(b"12345678")
            self.report(
                {"kind": "checkpoint", "time": time, "step": step, "path": str(folder), "size_bytes": 8}
            )
        if values:
            named = {
                key.replace("accuracy", ACCURACY).replace("__", "/"): each for key, each in values.items()
            }
            self.report({"kind": "metrics", "time": time, "step": step, "values": named})

    def read(self, **query: str) -> dict[int, dict[str, Any]]:
        found = self._client.get(self.url, params=query)
        assert found.status_code == 200, found.text
        return {each["step"]: each for each in found.json()["items"]}

    def read_best(self, **query: str) -> dict[str, Any] | None:
        found = self._client.get(self.url, params=query)
        assert found.status_code == 200, found.text
        best: dict[str, Any] | None = found.json()["best"]
        return best

    def left(self) -> list[int]:
        """Steps that have not made room."""
        return sorted(step for step, each in self.read().items() if not each["is_pruned"])


@pytest.fixture
def start(client: TestClient, settings: Settings, make_launched: Callable[..., Any]) -> Callable[..., Run]:
    return lambda **job: Run(client, settings, make_launched(**job))


def test_a_checkpoint_has_what_was_measured_at_its_step_and_says_which_is_of_another(
    start: Callable[..., Run],
) -> None:
    run = start()

    run.step(1, accuracy=0.25, critic__score__mean=0.1)
    run.step(2, saves=False, critic__score__mean=0.3)
    run.step(3, critic__score__mean=0.5, perf__memory=7.0)

    found = run.read()
    assert found[1]["metrics"] == {ACCURACY: 0.25, "critic/score/mean": 0.1}
    # The accuracy of step 1 is that of other weights.
    assert found[3]["metrics"] == {"critic/score/mean": 0.5}
    assert found[1]["metric_steps"] == found[3]["metric_steps"] == {}

    run.step(4)
    run.step(5, saves=False, critic__score__mean=0.9)
    last = run.read()[4]
    assert (last["metrics"], last["metric_steps"]) == ({"critic/score/mean": 0.5}, {"critic/score/mean": 3})


def test_a_value_of_another_step_never_decides_which_is_best(start: Callable[..., Run]) -> None:
    run = start()

    run.step(1, saves=False, critic__score__mean=0.9)
    run.step(2)
    run.step(3, critic__score__mean=0.4)
    run.step(4)

    assert run.read_best(best_by="critic/score/mean") == {
        "metric": "critic/score/mean",
        "mode": "max",
        "step": 3,
    }
    assert run.read()[2]["metric_steps"] == {"critic/score/mean": 1}


def test_the_best_is_that_of_the_validation_where_it_was_first_measured(start: Callable[..., Run]) -> None:
    run = start()

    for step, accuracy in ((1, 0.2), (2, 0.8), (4, 0.4)):
        run.step(step, accuracy=accuracy, critic__score__mean=float(step))
    run.step(3)  # the value of step 2 stands for it too

    assert [step for step, each in run.read().items() if each["is_best"]] == [2]


def test_the_best_by_a_metric_of_the_recipe_is_that_of_the_runs_own_data_source(
    start: Callable[..., Run],
) -> None:
    run = start()
    for step, reward in ((1, 0.2), (2, 0.8), (3, 0.4)):
        run.step(step, **{"val-core/linksearch/reward/mean@1": reward})

    best = run.read_best(best_by=ACCURACY)

    assert best == {"metric": "val-core/linksearch/reward/mean@1", "mode": "max", "step": 2}


@pytest.mark.parametrize(
    ("query", "step"),
    [
        ({"best_by": "critic/score/mean"}, 3),
        ({"best_by": "critic/score/mean", "mode": "min"}, 1),
        ({"best_by": "actor/pg_loss"}, 2),
        ({"best_by": "nothing"}, None),
    ],
)
def test_another_metric_may_tell_the_best(
    query: dict[str, str], step: int | None, start: Callable[..., Run]
) -> None:
    run = start()

    for number, loss in ((1, 0.5), (2, 0.1), (3, 0.3)):
        run.step(number, critic__score__mean=float(number), actor__pg_loss=loss)

    found = [each["step"] for each in run.read(**query).values() if each["is_best"]]
    assert found == ([] if step is None else [step])


@pytest.mark.parametrize(
    ("query", "metric", "mode", "step"),
    [
        ({}, ACCURACY, "max", 2),
        ({"best_by": "actor/nll"}, "actor/nll", "min", 3),
        ({"best_by": "actor/nll", "mode": "max"}, "actor/nll", "max", 1),
        ({"best_by": "perf/throughput"}, "perf/throughput", "max", 1),
        ({"best_by": "nothing"}, "nothing", "max", None),
    ],
)
def test_the_list_says_which_metric_decided_and_which_end_was_the_good_one(
    query: dict[str, str], metric: str, mode: str, step: int | None, start: Callable[..., Run]
) -> None:
    run = start()
    for number, accuracy in ((1, 0.2), (2, 0.8), (3, 0.4)):
        run.step(number, accuracy=accuracy, actor__nll=4.0 - number, perf__throughput=9.0 - number)

    assert run.read_best(limit="1", **query) == {"metric": metric, "mode": mode, "step": step}


def test_nothing_decides_where_nothing_was_measured(start: Callable[..., Run]) -> None:
    run = start()
    run.step(1)

    assert run.read_best() is None


def test_modes_suit_their_metrics() -> None:
    assert direction.suit_mode("val/loss") == "min"
    assert direction.suit_mode("actor/pg_loss") == "min"
    assert direction.suit_mode("eval_perplexity") == "min"
    assert direction.suit_mode("val-core/dataset/acc/mean@1") == "max"
    assert direction.suit_mode("eval_rewards/margins") == "max"
    assert direction.suit_mode("train/cross_entropy") == "min"
    keys = ["actor/entropy", "train/cross_entropy", "critic/score/mean"]
    assert [direction.find_direction(key, jobs=[]) for key in keys] == [None, "min", "max"]


@pytest.mark.parametrize(
    ("key", "mode"),
    [
        ("response_length/mean", None),
        ("completions/mean_length", None),
        ("actor/grad_norm", None),
        ("actor/pg_clipfrac", None),
        ("clip_ratio/region_mean", None),
        ("actor/lr", None),
        ("learning_rate", None),
        ("timing_s/step", "min"),
        ("perf/time_per_step", "min"),
        ("perf/max_memory_allocated_gb", "min"),
        ("training/rollout_probs_diff_mean", "min"),
        ("perf/throughput", "max"),
        ("rewards/accuracies", "max"),
        ("val-core/time/memory/acc/mean@1", "max"),
        ("val-core/length_control/acc/best@4/mean", "max"),
        ("val-aux/code_diff/response_length/mean@1", None),
        ("eval/diff/accuracy", "max"),
        ("eval/accuracy", "max"),
        ("eval/loss", "min"),
    ],
)
def test_what_tells_how_a_run_goes_is_neither_better_nor_worse(key: str, mode: str | None) -> None:
    assert direction.find_direction(key, jobs=[]) == mode


def test_older_checkpoints_make_room_and_the_best_one_stays(start: Callable[..., Run]) -> None:
    run = start(params={"keep_checkpoints": 2})

    for step, accuracy in ((1, 0.2), (2, 0.9), (3, 0.3), (4, 0.4), (5, 0.5)):
        run.step(step, accuracy=accuracy)

    assert run.left() == [2, 4, 5]
    found = run.read()
    assert found[2]["kept_because"] == ["best"]
    assert found[1]["metrics"] == {ACCURACY: 0.2}
    assert not found[1]["can_export"]


def test_a_new_best_one_lets_the_old_one_go(start: Callable[..., Run]) -> None:
    run = start(params={"keep_checkpoints": 1})

    for step, accuracy in ((1, 0.5), (2, 0.1), (3, 0.9), (4, 0.2)):
        run.step(step, accuracy=accuracy)

    assert run.left() == [3, 4]


def test_the_job_may_choose_the_metric_that_keeps(start: Callable[..., Run]) -> None:
    run = start(params={"keep_checkpoints": 1}, keep_best_by={"metric": "actor/entropy", "mode": "min"})

    for step, entropy in ((1, 3.0), (2, 1.0), (3, 2.0), (4, 4.0)):
        run.step(step, accuracy=step / 10, actor__entropy=entropy)

    assert run.left() == [2, 4]


def test_pinned_checkpoints_stay_until_they_are_let_go(client: TestClient, start: Callable[..., Run]) -> None:
    run = start(params={"keep_checkpoints": 1})
    run.step(1)
    pinned = client.patch(f"{run.url}/1", json={"is_kept": True})

    for step in (2, 3, 4):
        run.step(step)
    before = run.left()
    client.patch(f"{run.url}/1", json={"is_kept": False})

    assert pinned.json()["is_kept"]
    assert before == [1, 4]
    assert run.left() == [4]


def test_without_a_number_all_stay(start: Callable[..., Run]) -> None:
    run = start()

    for step in range(1, 6):
        run.step(step, accuracy=0.1)

    assert run.left() == [1, 2, 3, 4, 5]


def test_as_many_are_kept_as_the_job_was_composed_with(
    client: TestClient,
    settings: Settings,
    model: Model,
    dataset: Dataset,
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A preset or default that changes later doesn't remove a running job's checkpoints."""
    body = {"name": "kept", "recipe": "sft", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id}
    job = client.post("/api/v1/jobs", json=body).json()
    composed = client.post("/api/v1/jobs/preview", json=body).json()["params"]["keep_checkpoints"]
    monkeypatch.setattr(checkpoints, "_default_keep_count", lambda _job: 1)
    with database.write() as session:
        claim = service.claim_for_launch(session, job_id=job["id"])
    assert claim is not None
    run = Run(client, settings, Launched(job_id=job["id"], token=claim.token))

    for step in (1, 2, 3):
        run.step(step)

    assert composed is None
    assert run.left() == [1, 2, 3]


def test_a_person_may_remove_one(client: TestClient, start: Callable[..., Run]) -> None:
    run = start()
    for step in (1, 2, 3):
        run.step(step)

    removed = client.delete(f"{run.url}/1")
    again = client.delete(f"{run.url}/1")

    assert (removed.status_code, again.status_code) == (204, 204)
    assert run.read()[1]["is_pruned"]
    assert client.delete(f"{run.url}/9").json()["error"] == "checkpoint_not_found"


def test_what_is_pinned_or_being_written_is_not_removed(
    client: TestClient, start: Callable[..., Run]
) -> None:
    run = start()
    for step in (1, 2):
        run.step(step)
    client.patch(f"{run.url}/1", json={"is_kept": True})

    answers = [client.delete(f"{run.url}/{step}").json() for step in (1, 2)]

    assert [answer["error"] for answer in answers] == ["checkpoint_in_use", "checkpoint_in_use"]
    assert [answer["details"]["reason"] for answer in answers] == ["pinned", "writing"]


def test_a_removed_checkpoint_cannot_be_continued_from(
    client: TestClient, database: Database, start: Callable[..., Run]
) -> None:
    run = start()
    for step in (1, 2):
        run.step(step)
    client.delete(f"{run.url}/1")
    with database.write() as session:
        service.settle(session, job_id=run.job_id, attempt=1, state=JobState.FAILED, exit_code=1)

    answer = client.post(f"/api/v1/jobs/{run.job_id}/resume", json={"checkpoint_step": 1})

    assert answer.status_code == 409
    assert answer.json()["error"] == "checkpoint_pruned"
    assert "step 1" in answer.json()["message"]


def test_metrics_behind_a_resume_stay_with_their_checkpoint(
    client: TestClient, database: Database, start: Callable[..., Run]
) -> None:
    run = start()
    for step, accuracy in ((1, 0.1), (2, 0.7)):
        run.step(step, accuracy=accuracy)
    with database.write() as session:
        service.settle(session, job_id=run.job_id, attempt=1, state=JobState.FAILED, exit_code=1)

    client.post(f"/api/v1/jobs/{run.job_id}/resume", json={"checkpoint_step": 1})

    found = run.read()
    assert found[2]["metrics"] == {ACCURACY: 0.7}
    assert found[1]["kept_because"] == ["resumed"]
    with database.read() as session:
        assert repository.find_checkpoint(session, job_id=run.job_id, step=2).metrics == {ACCURACY: 0.7}  # type: ignore[union-attr]


def resume(client: TestClient, database: Database, run: Run, step: int) -> None:
    """End the run's attempt, and launch the next one from a checkpoint."""
    with database.write() as session:
        service.settle(session, job_id=run.job_id, attempt=run.attempt, state=JobState.FAILED, exit_code=1)
    answer = client.post(f"/api/v1/jobs/{run.job_id}/resume", json={"checkpoint_step": step})
    assert answer.is_success, answer.text
    with database.write() as session:
        claim = service.claim_for_launch(session, job_id=run.job_id)
    assert claim is not None
    run.continue_with(Launched(job_id=run.job_id, token=claim.token, attempt=run.attempt + 1))


def test_a_checkpoint_behind_a_resume_shows_nothing_of_the_next_attempt(
    client: TestClient, database: Database, start: Callable[..., Run]
) -> None:
    run = start()
    score = "critic/score/mean"
    for step in range(5, 26, 5):
        values = {} if step % 10 else {"critic__score__mean": step / 100}
        run.step(step, saves=step >= 15, **values)
    before = run.read()

    resume(client, database, run, 15)
    for step in range(16, 31):
        run.step(step, saves=step == 30, critic__score__mean=0.9)
    after = run.read()
    resume(client, database, run, 30)

    assert [(before[step]["metrics"], before[step]["metric_steps"]) for step in (15, 20, 25)] == [
        ({score: 0.1}, {score: 10}),
        ({score: 0.2}, {}),
        ({score: 0.2}, {score: 20}),
    ]
    for found in (after, run.read()):
        for step in (15, 20, 25):
            assert found[step]["metrics"] == before[step]["metrics"]
            assert found[step]["metric_steps"] == before[step]["metric_steps"]
        assert found[30]["metrics"] == {score: 0.9}
    best = run.read_best(best_by=score)
    assert best is not None
    assert best["step"] == 30


def test_a_step_that_is_saved_again_has_its_new_metrics(
    client: TestClient, database: Database, start: Callable[..., Run]
) -> None:
    run = start()
    run.step(1, critic__score__mean=0.1)
    run.step(2, critic__score__mean=0.2)

    resume(client, database, run, 1)
    run.step(2, critic__score__mean=0.7)

    assert run.read()[2]["metrics"] == {"critic/score/mean": 0.7}


def test_checkpoints_come_in_pages_and_the_best_is_that_of_all(
    start: Callable[..., Run], client: TestClient
) -> None:
    run = start()
    for step, accuracy in ((1, 0.9), (2, 0.1), (3, 0.2), (4, 0.3), (5, 0.4)):
        run.step(step, accuracy=accuracy)

    pages, cursor = [], None
    while True:
        page = client.get(run.url, params={"limit": 2, **({"cursor": cursor} if cursor else {})}).json()
        pages.append([(each["step"], each["is_best"]) for each in page["items"]])
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert pages == [[(5, False), (4, False)], [(3, False), (2, False)], [(1, True)]]


@pytest.mark.parametrize("cursor", ["nonsense", "WyJhIl0", "W10", "WzEsMl0", "W3RydWVd"])
def test_a_cursor_that_was_made_up_is_refused(
    start: Callable[..., Run], client: TestClient, cursor: str
) -> None:
    run = start()

    answer = client.get(run.url, params={"cursor": cursor})

    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_cursor")
