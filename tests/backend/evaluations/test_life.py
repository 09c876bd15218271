"""Whose turn an evaluation is, and how it is cancelled, tried again and deleted."""

from collections.abc import Callable
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.benchmarks import service as benchmarks
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.evaluations import repository
from trellis_api.evaluations import service as evaluations
from trellis_api.jobs import service
from trellis_api.jobs.queue import admission
from trellis_api.jobs.repository import list_purges
from trellis_contracts.states import JobState

Ask = Callable[..., Any]
SLOTS = 4


def claim(database: Database, *, max_evaluations: int = 1) -> str | None:
    """The job whose turn it is, launched."""
    with database.write() as session:
        found = admission.claim_next(
            session, total_slots=SLOTS, max_exports=1, max_evaluations=max_evaluations
        )
        return found.job.id if found else None


def state_of(client: TestClient, evaluation_id: str) -> str:
    return str(client.get(f"/api/v1/evaluations/{evaluation_id}").json()["state"])


def settle(database: Database, settings: Settings, job_id: str, state: JobState) -> None:
    """The run is over: what the workers do then."""
    with database.write() as session:
        attempt = service.get_job(session, job_id=job_id).attempt
        assert service.settle(session, job_id=job_id, attempt=attempt, state=state)
        job = service.get_locked_job(session, job_id=job_id)
        evaluations.go_on_if_displaced(session, settings, job=job)


def test_an_evaluation_waits_for_its_benchmark_and_lets_others_pass(
    database: Database, client: TestClient, ask: Ask, install: Callable[..., None]
) -> None:
    install("gsm8k")
    first = ask({"benchmark": "math500"}).json()["items"][0]
    second = ask({"benchmark": "gsm8k"}).json()["items"][0]

    turns = [claim(database), claim(database)]
    install("math500")
    settled = client.get(f"/api/v1/evaluations/{first['id']}").json()["pending_benchmarks"]
    turns.append(claim(database, max_evaluations=2))

    assert turns == [second["job_id"], None, first["job_id"]]
    assert settled == []


def test_one_whose_benchmark_cannot_be_had_does_not_wait_for_ever(database: Database, ask: Ask) -> None:
    made = ask().json()["items"][0]
    with database.write() as session:
        benchmarks.mark_failed(session, name="gsm8k", reason="the hub cannot be reached")

    # The launch says then what is missing.
    assert claim(database) == made["job_id"]


def test_only_some_run_at_once_on_a_cpu(database: Database, ask: Ask, install: Callable[..., None]) -> None:
    install("gsm8k")
    for _ in range(3):
        ask()

    turns = [claim(database, max_evaluations=2) for _ in range(3)]

    assert [turn is None for turn in turns] == [False, False, True]


def test_trainings_go_first_whatever_the_priority(
    database: Database, ask: Ask, install: Callable[..., None], make_job: Callable[..., str]
) -> None:
    install("gsm8k")
    evaluation = ask(priority=100).json()["items"][0]
    training = make_job(gpus=SLOTS, priority=-100)

    assert [claim(database), claim(database)] == [training, evaluation["job_id"]]


@pytest.fixture
def on_gpus(
    settings: Settings, database: Database, ask: Ask, install: Callable[..., None]
) -> Callable[[int], dict[str, Any]]:
    """An evaluation that runs on some GPUs."""
    settings.platform = "cuda"
    install("gsm8k")

    def start(gpus: int) -> dict[str, Any]:
        made: dict[str, Any] = ask(engine={"tensor_parallel": gpus}).json()["items"][0]
        assert claim(database) == made["job_id"]
        return made

    return start


def test_evaluations_give_their_slots_to_a_training_and_go_on_afterwards(
    database: Database,
    settings: Settings,
    client: TestClient,
    on_gpus: Callable[[int], dict[str, Any]],
    make_job: Callable[..., str],
) -> None:
    older, newer = on_gpus(2), on_gpus(1)
    training = make_job(gpus=2)

    turns = [claim(database), claim(database)]
    told = [client.get(f"/api/v1/evaluations/{each['id']}").json() for each in (older, newer)]
    settle(database, settings, newer["job_id"], JobState.STOPPED)
    again = client.get(f"/api/v1/evaluations/{newer['id']}").json()
    turns += [claim(database), claim(database)]

    assert turns == [None, None, training, None]
    assert [(each["state"], each["preempted"]) for each in told] == [
        ("launching", False), ("stopping", True),
    ]  # fmt: skip
    assert (again["state"], again["attempt"], again["preempted"]) == ("queued", 2, False)
    settle(database, settings, training, JobState.SUCCEEDED)
    assert claim(database) == newer["job_id"]


def test_nobody_is_stopped_in_vain(
    database: Database,
    client: TestClient,
    on_gpus: Callable[[int], dict[str, Any]],
    make_job: Callable[..., str],
) -> None:
    holder = make_job(gpus=3)
    assert claim(database) == holder
    running = on_gpus(1)
    make_job(gpus=3)

    assert claim(database) is None
    assert state_of(client, running["id"]) == "launching"


def test_one_that_makes_room_can_be_cancelled_for_good(
    database: Database,
    settings: Settings,
    client: TestClient,
    on_gpus: Callable[[int], dict[str, Any]],
    make_job: Callable[..., str],
) -> None:
    running = on_gpus(4)
    make_job(gpus=1)
    claim(database)

    answers = [client.post(f"/api/v1/evaluations/{running['id']}/cancel") for _ in range(2)]
    settle(database, settings, running["job_id"], JobState.STOPPED)

    assert [answer.status_code for answer in answers] == [200, 409]
    assert state_of(client, running["id"]) == "stopped"


@pytest.mark.parametrize("state", [JobState.SUCCEEDED, JobState.CRASHED])
def test_one_that_ends_by_itself_before_it_heard_is_not_run_again(
    database: Database,
    settings: Settings,
    client: TestClient,
    on_gpus: Callable[[int], dict[str, Any]],
    make_job: Callable[..., str],
    state: JobState,
) -> None:
    running = on_gpus(4)
    make_job(gpus=1)
    claim(database)

    settle(database, settings, running["job_id"], state)

    read = client.get(f"/api/v1/evaluations/{running['id']}").json()
    assert (read["state"], read["preempted"]) == (state.value, False)
    assert (read["is_displaced"], read["waits_for"]) == (read["preempted"], read["pending_benchmarks"])


def test_a_cancelled_one_is_tried_again_and_brings_its_benchmark_again(
    database: Database, client: TestClient, ask: Ask
) -> None:
    made = ask().json()["items"][0]
    path = f"/api/v1/evaluations/{made['id']}"
    with database.write() as session:
        benchmarks.mark_failed(session, name="gsm8k", reason="the hub cannot be reached")

    early = client.post(f"{path}/retry")
    client.post(f"{path}/cancel")
    stopped = client.get(path).json()
    again = client.post(f"{path}/retry")

    assert (early.status_code, early.json()["error"]) == (409, "evaluation_not_retryable")
    assert (stopped["state"], stopped["can_retry"], stopped["can_delete"]) == ("stopped", True, True)
    assert (again.json()["state"], again.json()["attempt"]) == ("queued", 2)
    assert again.json()["pending_benchmarks"] == ["gsm8k"]


def test_a_deleted_one_takes_its_job_and_leaves_its_files_to_the_workers(
    database: Database, client: TestClient, ask: Ask
) -> None:
    made = ask().json()["items"][0]
    path = f"/api/v1/evaluations/{made['id']}"

    early = client.delete(path)
    client.post(f"{path}/cancel")
    by_its_job = client.delete(f"/api/v1/jobs/{made['job_id']}")
    deleted = client.delete(path)

    assert (early.status_code, early.json()["error"]) == (409, "evaluation_active")
    assert (by_its_job.status_code, by_its_job.json()["error"]) == (409, "job_of_evaluation")
    assert deleted.status_code == 204
    assert client.get(path).status_code == 404
    assert client.get(f"/api/v1/jobs/{made['job_id']}").status_code == 404
    with database.read() as session:
        assert list(repository.list_leftovers(session)) == [made["id"]]
        assert list(list_purges(session)) == [made["job_id"]]


def test_a_checkpoints_job_stays_while_it_is_measured(
    client: TestClient, ask: Ask, checkpoint: dict[str, Any]
) -> None:
    made = ask(targets=[checkpoint]).json()["items"][0]

    early = client.delete(f"/api/v1/jobs/{checkpoint['job']}")
    client.post(f"/api/v1/evaluations/{made['id']}/cancel")
    later = client.delete(f"/api/v1/jobs/{checkpoint['job']}")

    assert (early.status_code, early.json()["error"]) == (409, "checkpoint_in_use")
    assert later.status_code == 204
    target = client.get(f"/api/v1/evaluations/{made['id']}").json()["target"]
    assert (target["job"]["name"], target["step"]) == (None, 3)


def test_benchmarks_are_brought_once(client: TestClient, install: Callable[..., None]) -> None:
    first = client.post("/api/v1/benchmarks/gsm8k/install")
    twice = client.post("/api/v1/benchmarks/gsm8k/install")
    unknown = client.post("/api/v1/benchmarks/gsm9k/install")
    install("math500", rows=400, groups={"type": {"Algebra": 400}})

    assert (first.status_code, first.json()["state"]) == (202, "pending")
    assert (twice.status_code, twice.json()["error"]) == (409, "benchmark_not_installable")
    assert (unknown.status_code, unknown.json()["error"]) == (404, "benchmark_not_found")
    here = client.get("/api/v1/benchmarks/math500").json()
    assert (here["state"], here["rows"], here["groups"]) == ("ready", {"test": 400}, {"type": ["Algebra"]})
    assert here["can_install"]  # another revision than the catalogue's
    names = [each["name"] for each in client.get("/api/v1/benchmarks").json()["items"]]
    assert names == ["gsm8k", "humaneval", "math", "math500", "mmlu"]


def test_files_of_a_benchmark_that_an_evaluation_reads_are_not_replaced(
    client: TestClient, ask: Ask, install: Callable[..., None]
) -> None:
    install("gsm8k")  # another revision than the catalogue's
    made = ask().json()["items"][0]

    early = client.post("/api/v1/benchmarks/gsm8k/install")
    client.post(f"/api/v1/evaluations/{made['id']}/cancel")
    later = client.post("/api/v1/benchmarks/gsm8k/install")

    assert (early.status_code, early.json()["error"]) == (409, "benchmark_in_use")
    assert early.json()["details"] == {"evaluations": [made["name"]]}
    assert (later.status_code, later.json()["state"]) == (202, "pending")
