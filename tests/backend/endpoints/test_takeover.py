"""A newer checkpoint takes over the engine of an older one of its job, or gets one of its own."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlmodel import Session
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.endpoints import repository, service, takeover
from trellis_api.endpoints.uses import release_target
from trellis_api.jobs import repository as job_rows
from trellis_api.jobs import service as jobs
from trellis_api.jobs.models import Checkpoint, Job
from trellis_api.models.models import Model
from trellis_contracts.attempt import REPLACE_TIMEOUT_S
from trellis_contracts.states import JobState
from trellis_testing.endpoint_life import Life
from trellis_testing.engine_server import EngineServer

SaveSteps = Callable[..., None]


@pytest.fixture
def job_id(model: Model, make_job: Callable[..., str]) -> str:
    return make_job(state=JobState.SUCCEEDED, model_id=model.id)


@pytest.fixture
def save(database: Database, settings: Settings, job_id: str) -> SaveSteps:
    """Save checkpoints of the job, with whole weights."""

    def save(*steps: int) -> None:
        for step in steps:
            folder = settings.checkpoint_dir(job_id) / f"global_step_{step}"
            folder.mkdir(parents=True)
            row = Checkpoint(
                job_id=job_id, step=step, attempt=1, path=str(folder), size_bytes=1, created_at=utc_now()
            )
            with database.write() as session:
                session.add(row)

    return save


@pytest.fixture
def stage(client: TestClient, life: Life, engine: EngineServer, job_id: str, save: SaveSteps) -> "Stage":
    """The endpoint of step 100, ready and idle, and the checkpoint of step 200."""
    save(100, 200)
    return Stage(client, life, engine, job_id)


class Stage:
    """What a person and the engine's run do."""

    def __init__(
        self,
        client: TestClient,
        life: Life,
        engine: EngineServer,
        job_id: str,
        *,
        is_replaceable: bool = True,
    ) -> None:
        self.client, self.life, self.engine, self.job_id = client, life, engine, job_id
        self.old = self.serve(100)
        self.token = life.launch(self.old)
        life.report_ready(client, self.old, self.token, engine.port, is_replaceable=is_replaceable)
        self.sequence = 1
        life.age(self.old, 61)

    def serve(self, step: int, **body: Any) -> dict[str, Any]:
        answer = self.client.post(f"/api/v1/jobs/{self.job_id}/checkpoints/{step}/endpoint", json=body)
        assert answer.status_code == 202, answer.text
        found: dict[str, Any] = answer.json()
        return found

    def read(self, step: int) -> dict[str, Any]:
        listed = self.client.get("/api/v1/endpoints").json()["items"]
        (found,) = [each for each in listed if each["step"] == step]
        return dict(found)

    def ask(self, word: int | str) -> tuple[int, dict[str, Any]]:
        body = {"model": f"{self.job_id}:{word}", "messages": [{"role": "user", "content": "1+1="}]}
        answer = self.client.post("/v1/chat/completions", json=body)
        return answer.status_code, answer.json()

    def beat(self) -> list[dict[str, Any]]:
        """Return what the engine of step 100 is told."""
        answer = self.client.post(
            f"/api/v1/ingest/jobs/{self.old['run_id']}/heartbeat",
            json={"attempt": 1, "step": 0},
            headers={"Authorization": f"Bearer {self.token}"},
        )
        found: list[dict[str, Any]] = answer.json()["adapters"]
        return found

    def report(self, told: dict[str, Any], reason: str | None = None) -> None:
        """Let the engine say that it has the weights that it was told of, or why not."""
        self.sequence += 1
        event = {
            "kind": "adapter",
            "time": utc_now().isoformat(),
            "endpoint_id": told["endpoint_id"],
            "load_id": told["load_id"],
            "reason": reason,
        }
        answer = self.client.post(
            f"/api/v1/ingest/jobs/{self.old['run_id']}/batches",
            json={"attempt": 1, "sequence": self.sequence, "events": [event]},
            headers={"Authorization": f"Bearer {self.token}"},
        )
        assert answer.status_code == 200, answer.text

    def has_own_engine(self, endpoint: dict[str, Any]) -> bool:
        return bool(endpoint["run_id"] != self.old["run_id"]) and self.beat() == []


def test_the_engine_of_an_older_checkpoint_takes_the_weights_of_a_newer_one(stage: Stage) -> None:
    new = stage.serve(200)

    assert (new["run_id"], new["state"], new["shares_engine_of"]) == (stage.old["run_id"], "starting", None)
    (told,) = stage.beat()
    assert (told["served_name"], told["replaces"]) == (f"{stage.job_id}:200", True)
    assert told["checkpoint"]["path"].endswith("global_step_200")
    assert stage.read(100)["state"] == "ready", "it is served until then"
    assert stage.ask(100)[0] == 200
    stage.report(told)

    new, old = stage.read(200), stage.read(100)
    assert (new["state"], new["max_model_len"], new["can_stop"]) == ("ready", 512, True)
    assert (old["state"], old["stopped_by"], old["can_start"]) == ("stopped", "replaced", True)
    assert (old["shares_engine_of"], old["failure"]) == (None, None)
    assert stage.beat() == []
    assert stage.ask(200)[0] == 200
    assert (stage.engine.bodies[-1]["model"], stage.engine.bodies[-1].get("cache_salt")) == (
        f"{stage.job_id}:200",
        None,
    )
    run = stage.client.get(f"/api/v1/jobs/{new['run_id']}").json()
    assert run["name"] == f"Endpoint {stage.job_id}:200"


def test_a_starting_endpoint_locks_its_run_before_the_training(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    locked: list[str] = []
    lock_job = job_rows.lock_job

    def lock(session: Session, *, job_id: str, waits: bool = True) -> Job | None:
        locked.append(job_id)
        return lock_job(session, job_id=job_id, waits=waits)

    monkeypatch.setattr(job_rows, "lock_job", lock)
    stage.serve(100)

    assert list(dict.fromkeys(locked)) == [stage.old["run_id"], stage.job_id]


def test_the_older_checkpoint_is_started_again_with_an_engine_of_its_own(stage: Stage) -> None:
    stage.serve(200)
    stage.report(stage.beat()[0])

    status, answer = stage.ask(100)

    assert (status, answer["error"]["code"]) == (503, "endpoint_starting")
    assert (stage.read(100)["state"], stage.read(100)["stopped_by"]) == ("starting", None)
    assert stage.has_own_engine(stage.read(100))
    assert stage.read(200)["state"] == "ready"


def test_an_engine_can_be_taken_over_again_and_again(stage: Stage, save: SaveSteps) -> None:
    save(300)
    stage.serve(200)
    stage.report(stage.beat()[0])
    stage.life.age(stage.read(200), 61)

    new = stage.serve(300)
    stage.report(stage.beat()[0])

    assert new["run_id"] == stage.old["run_id"]
    assert [stage.read(step)["state"] for step in (100, 200, 300)] == ["stopped", "stopped", "ready"]


def test_latest_takes_over_an_engine_that_is_idle(stage: Stage) -> None:
    status, answer = stage.ask("latest")
    (told,) = stage.beat()
    stage.report(told)

    assert (status, answer["error"]["code"]) == (503, "endpoint_starting")
    assert stage.ask("latest")[0] == 200
    assert stage.engine.bodies[-1]["model"] == f"{stage.job_id}:200"
    assert stage.read(100)["stopped_by"] == "replaced"


def test_latest_leaves_a_step_alone_that_others_use(stage: Stage) -> None:
    assert stage.ask(100)[0] == 200

    assert stage.ask("latest")[1]["error"]["code"] == "endpoint_starting"

    assert stage.has_own_engine(stage.read(200))
    assert stage.ask(100)[0] == 200


def test_a_step_that_is_in_use_keeps_its_engine_where_another_step_is_named(stage: Stage) -> None:
    assert stage.ask(100)[0] == 200

    assert stage.has_own_engine(stage.serve(200))
    assert stage.read(100)["state"] == "ready"


def test_a_step_that_has_just_been_loaded_keeps_its_engine(stage: Stage) -> None:
    stage.life.age(stage.old, 30)

    assert stage.has_own_engine(stage.serve(200))


def test_an_endpoint_that_is_to_be_kept_keeps_its_engine(stage: Stage) -> None:
    stage.client.patch(f"/api/v1/endpoints/{stage.old['id']}", json={"preemptible": False})

    assert stage.has_own_engine(stage.serve(200))


@pytest.mark.parametrize("meanwhile", ["is taken", "is kept"])
def test_an_engine_that_another_transaction_deals_with_keeps_its_weights(
    stage: Stage, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    def lock(session: Session, *, job_id: str, waits: bool) -> Job | None:
        assert not waits
        if meanwhile == "is taken":
            return None
        old = repository.find_endpoint(session, endpoint_id=stage.old["id"])
        assert old is not None
        old.is_preemptible = False
        repository.add_endpoint(session, old)
        return jobs.get_job(session, job_id=job_id)

    monkeypatch.setattr(takeover, "lock_job", lock)

    assert stage.has_own_engine(stage.serve(200))


def test_an_engine_whose_run_is_locked_is_not_waited_for(stage: Stage, database: Database) -> None:
    if database.engine.dialect.name == "sqlite":
        pytest.skip("it has no locks of rows")
    with database.write() as session:
        jobs.get_locked_job(session, job_id=stage.old["run_id"])
        own = stage.serve(200)

    assert stage.has_own_engine(own)


def test_another_context_length_needs_an_engine_of_its_own(stage: Stage) -> None:
    assert stage.has_own_engine(stage.serve(200, max_model_len=64))


def test_an_older_checkpoint_does_not_take_over_a_newer_ones_engine(stage: Stage, save: SaveSteps) -> None:
    save(50)

    assert stage.has_own_engine(stage.serve(50))


def test_an_engine_that_was_started_without_can_not_be_taken_over(
    client: TestClient, life: Life, engine: EngineServer, job_id: str, save: SaveSteps
) -> None:
    save(100, 200)
    stage = Stage(client, life, engine, job_id, is_replaceable=False)

    assert stage.has_own_engine(stage.serve(200))


@pytest.mark.parametrize(("chosen", "platform", "replaces"), [(False, "cpu", False), (True, "cuda", True)])
def test_the_operator_decides(
    stage: Stage, settings: Settings, chosen: bool, platform: str, replaces: bool
) -> None:
    settings.endpoint_replace_weights = chosen
    settings.platform = platform  # type: ignore[assignment]

    assert stage.has_own_engine(stage.serve(200)) is not replaces


def test_on_gpus_it_is_off_unless_the_operator_wants_it(settings: Settings) -> None:
    settings.platform = "cuda"
    assert not settings.replaces_weights


def test_what_the_engine_can_not_take_gets_an_engine_of_its_own(
    stage: Stage, caplog: pytest.LogCaptureFixture
) -> None:
    new = stage.serve(200)

    stage.report(stage.beat()[0], reason="Requests were still being answered after 60 s.")

    own = stage.read(200)
    assert stage.has_own_engine(own)
    assert (own["state"], own["sharing_refusal"]) == ("starting", None)
    assert stage.read(100)["state"] == "ready"
    assert f"endpoint {new['id']} gets an engine of its own" in caplog.text
    assert "still being answered" in caplog.text


def test_an_engine_that_broke_takes_nobody_along_but_the_checkpoint_that_it_served(stage: Stage) -> None:
    stage.serve(200)
    stage.report(stage.beat()[0], reason="out of memory")
    stage.life.end(
        stage.old, JobState.FAILED, reason="The weights could not be replaced.", cause="engine_died"
    )

    assert (stage.read(100)["state"], stage.read(200)["state"]) == ("failed", "starting")


def test_a_newer_checkpoint_outlives_the_stop_of_the_engine_that_it_was_to_take_over(stage: Stage) -> None:
    new = stage.serve(200)
    (told,) = stage.beat()

    stage.client.delete(f"/api/v1/endpoints/{stage.old['id']}").raise_for_status()

    assert (stage.read(100)["state"], stage.read(200)["state"]) == ("stopping", "starting")
    assert stage.has_own_engine(stage.read(200))
    stage.report(told)
    stage.life.end(stage.old, JobState.STOPPED)
    assert (stage.read(100)["stopped_by"], stage.read(200)["state"]) == ("request", "starting")
    assert stage.read(200)["id"] == new["id"]


@pytest.mark.parametrize("state", [JobState.FAILED, JobState.CRASHED, JobState.STOPPED])
def test_a_newer_checkpoint_outlives_the_end_of_the_engine_that_it_was_to_take_over(
    stage: Stage, state: JobState
) -> None:
    stage.serve(200)

    stage.life.end(stage.old, state)

    assert stage.read(200)["state"] == "starting"
    assert stage.read(200)["run_id"] != stage.old["run_id"]


def test_an_engine_that_took_weights_that_nobody_wants_any_more_is_stopped(
    stage: Stage, database: Database
) -> None:
    new = stage.serve(200)
    (told,) = stage.beat()
    stage.client.delete(f"/api/v1/endpoints/{new['id']}").raise_for_status()
    assert stage.beat() == []
    assert stage.read(100)["state"] == "ready"

    stage.report(told)

    assert (stage.read(100)["state"], stage.read(200)["state"]) == ("stopping", "stopped")
    with database.read() as session:
        reason = jobs.get_job(session, job_id=stage.old["run_id"]).reason
    assert f"has the weights of checkpoint {stage.job_id}:200" in str(reason)
    stage.life.end(stage.old, JobState.STOPPED)
    assert (stage.read(100)["state"], stage.read(100)["stopped_by"]) == ("stopped", "replaced")


def test_weights_that_are_wanted_again_are_there_whichever_request_they_came_by(stage: Stage) -> None:
    new = stage.serve(200)
    (first,) = stage.beat()
    stage.client.delete(f"/api/v1/endpoints/{new['id']}").raise_for_status()
    stage.life.age(stage.old, 61)
    stage.serve(200)
    (second,) = stage.beat()

    stage.report(first, reason="a refusal of the request that was taken back")
    assert (stage.read(100)["state"], stage.read(200)["run_id"]) == ("ready", stage.old["run_id"])
    stage.report(first)
    assert (stage.read(100)["stopped_by"], stage.read(200)["state"]) == ("replaced", "ready")
    stage.report(second)
    assert (stage.read(100)["stopped_by"], stage.read(200)["state"]) == ("replaced", "ready")


def test_the_older_endpoint_outlives_the_run_of_the_newer_one(stage: Stage, database: Database) -> None:
    stage.serve(200)
    stage.report(stage.beat()[0])
    stage.life.end(stage.old, JobState.STOPPED)

    stage.client.delete(f"/api/v1/jobs/{stage.old['run_id']}").raise_for_status()

    (left,) = stage.client.get("/api/v1/endpoints").json()["items"]
    assert (left["id"], left["stopped_by"], left["can_start"]) == (stage.old["id"], "replaced", True)
    with database.read() as session:
        reason = jobs.get_job(session, job_id=left["run_id"]).reason
    assert reason == f"Stopped because checkpoint {stage.job_id}:200 took over its engine."


def test_a_second_checkpoint_does_not_wait_for_an_engine_that_is_being_taken_over(
    stage: Stage, save: SaveSteps
) -> None:
    save(300)
    stage.serve(200)

    assert stage.serve(300)["run_id"] != stage.old["run_id"]
    assert [told["served_name"] for told in stage.beat()] == [f"{stage.job_id}:200"]


def test_an_engine_that_never_answers_is_given_up(stage: Stage, database: Database) -> None:
    new = stage.serve(200)
    with database.write() as session:
        for endpoint_id in (new["id"], stage.old["id"]):
            row = repository.find_endpoint(session, endpoint_id=endpoint_id)
            assert row is not None
            row.asked_at = row.ready_at = utc_now().replace(year=2020)
            session.add(row)
    with database.write() as session:
        service.give_up_lost_load(session, endpoint_id=new["id"])

    assert stage.has_own_engine(stage.read(200))
    assert stage.read(200)["sharing_refusal"] is None


def test_an_engine_may_take_as_long_as_it_is_waited_for(stage: Stage, database: Database) -> None:
    new = stage.serve(200)

    def wait(seconds: float) -> str:
        with database.write() as session:
            for endpoint_id in (new["id"], stage.old["id"]):
                row = repository.find_endpoint(session, endpoint_id=endpoint_id)
                assert row is not None
                row.asked_at = row.ready_at = utc_now() - timedelta(seconds=seconds)
                session.add(row)
        with database.write() as session:
            service.give_up_lost_load(session, endpoint_id=new["id"])
        return str(stage.read(200)["run_id"])

    assert wait(REPLACE_TIMEOUT_S + 60) == stage.old["run_id"]
    assert wait(2 * REPLACE_TIMEOUT_S + 60) != stage.old["run_id"]


def test_the_older_checkpoint_is_given_up_and_the_newer_one_held(
    stage: Stage, database: Database, save: SaveSteps
) -> None:
    with database.write() as session:
        job = jobs.get_locked_job(session, job_id=stage.job_id)
        job.params = {**job.params, "keep_checkpoints": 1}
        session.add(job)
    stage.serve(200)
    (told,) = stage.beat()
    save(300)

    def steps() -> list[int]:
        with database.write() as session:
            release_target(session, stage.job_id)
        rows = stage.client.get(f"/api/v1/jobs/{stage.job_id}/checkpoints").json()["items"]
        return sorted(each["step"] for each in rows if not each["is_pruned"])

    assert steps() == [100, 200, 300], "both are served until the engine has answered"
    stage.report(told)
    assert steps() == [200, 300]


def test_a_request_that_comes_to_the_engine_too_late_is_told_to_try_again(stage: Stage) -> None:
    stage.engine.refusal = (404, {"message": "The model `x` does not exist.", "param": "model"})

    status, answer = stage.ask(100)

    assert (status, answer["error"]["code"]) == (503, "endpoint_stopped")
