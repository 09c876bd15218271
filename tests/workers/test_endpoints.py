"""Endpoints as the workers see them: what an engine is told, which idle one stops, how one is settled."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from trellis_api.core.columns import utc_now
from trellis_api.core.errors import DomainError
from trellis_api.endpoints import repository, service
from trellis_api.endpoints.models import Endpoint
from trellis_api.endpoints.schemas import EndpointStart
from trellis_api.evaluations.schemas import CheckpointTarget, ModelTarget, Target
from trellis_api.jobs import service as jobs
from trellis_api.jobs.checkpoints import service as checkpoints
from trellis_api.jobs.models import Checkpoint, Job
from trellis_api.jobs.repository import list_checkpoints
from trellis_api.models.repository import find_model
from trellis_contracts.attempt import ENGINE_KEY_FILE, STOP_FILE
from trellis_contracts.evaluation import CheckpointSource
from trellis_contracts.recipe import Engine
from trellis_contracts.states import JobState
from trellis_testing.model_folders import write_model_folder
from trellis_workers.core.ray_client import RayJob, RayStatus
from trellis_workers.endpoints.idle import stop_idle_endpoints
from trellis_workers.endpoints.spec import build_serve_spec
from trellis_workers.endpoints.strays import give_up_lost_loads, stop_orphans
from trellis_workers.jobs import reconcile as reconcile_module
from trellis_workers.jobs.reconcile import reconcile
from trellis_workers.jobs.settle import settle
from trellis_workers.jobs.verdict import Settlement

from .conftest import Installation

MODEL = "mdl_aaaaaaaaaaaa"


@pytest.fixture
def platform(install: Callable[..., Installation]) -> Installation:
    installed = install(TRELLIS_ENDPOINT_IDLE_S="60", TRELLIS_ENDPOINT_MAX_TOKENS="99")
    write_model_folder(installed.settings.data_root / "models" / "tiny")
    return installed


def start(platform: Installation, target: Target | None = None, **request: Any) -> Job:
    """An endpoint's job, claimed by a worker."""
    with platform.write() as session:
        _, job = service.start(
            session,
            platform.settings,
            target=target or ModelTarget(model=MODEL),
            request=EndpointStart(**request),
        )
        claim = jobs.claim_for_launch(session, job_id=job.id)
    assert claim is not None
    platform.attempt_dir(claim.job).mkdir(parents=True)
    return platform.get_job(job.id)


def become_ready(platform: Installation, job: Job, *, idle_for_s: float = 0) -> None:
    """As its run reports, so long ago."""
    with platform.write() as session:
        row = find_endpoint(session, job)
        current = jobs.get_locked_job(session, job_id=job.id)
        current.state = JobState.RUNNING
        row.ready_attempt, row.host, row.port = job.attempt, "127.0.0.1", 1
        row.ready_at = utc_now() - timedelta(seconds=idle_for_s)
        session.add(row)


def find_endpoint(session: Any, job: Job) -> Endpoint:
    row = repository.find_by_job(session, job_id=job.id)
    assert row is not None
    return row


def add_checkpoint(platform: Installation, step: int, recipe: str = "sft", **values: Any) -> tuple[Job, Path]:
    source = platform.add_job(state=JobState.SUCCEEDED, recipe=recipe, **values)
    folder: Path = platform.settings.checkpoint_dir(source.id) / f"global_step_{step}"
    folder.mkdir(parents=True)
    with platform.write() as session:
        session.add(make_checkpoint(source, step, folder))
    return source, folder


def make_checkpoint(source: Job, step: int, folder: Path) -> Checkpoint:
    return Checkpoint(
        job_id=source.id, step=step, attempt=1, path=str(folder), size_bytes=1, created_at=utc_now()
    )


class Ray:
    """A cluster that says one thing of every submission."""

    def __init__(self, found: RayJob | None) -> None:
        self.found = found
        self.stopped: list[str] = []

    def find(self, submission_id: str) -> RayJob | None:
        del submission_id
        return self.found

    def stop(self, submission_id: str) -> None:
        self.stopped.append(submission_id)

    def list_unfinished(self) -> list[RayJob]:
        return []


def ray_job(job: Job, status: RayStatus, **changes: Any) -> RayJob:
    values = {"exit_code": None, "message": "", "metadata": {}, **changes}
    return RayJob(jobs.submission_id(job), status, **values)


# -- what an engine is told --------------------------------------------------------------------


def test_the_engine_of_a_model_is_told_where_its_weights_are(platform: Installation) -> None:
    job = start(platform, max_model_len=64)

    with platform.read() as session:
        spec = build_serve_spec(session, platform.settings, job)

    assert spec.serve is not None
    assert spec.engine == Engine.SERVE
    assert spec.model.path == str(platform.settings.data_root / "models" / "tiny")
    assert (spec.serve.served_name, spec.serve.checkpoint) == ("tiny", None)
    assert (spec.serve.max_model_len, spec.serve.max_tokens) == (64, 99)
    assert (spec.gpus, spec.serve.tensor_parallel) == (0, 1)
    assert not spec.serve.is_replaceable


def test_the_engine_of_a_checkpoint_is_told_where_to_gather_it(platform: Installation) -> None:
    source, folder = add_checkpoint(platform, 3)
    job = start(platform, CheckpointTarget(job=source.id, step=3))

    with platform.read() as session:
        spec = build_serve_spec(session, platform.settings, job)

    assert spec.serve is not None
    assert spec.serve.served_name == f"{source.id}:3"
    assert spec.serve.checkpoint == CheckpointSource(
        job_id=source.id, engine=Engine.VERL_SFT, step=3, path=str(folder)
    )
    assert spec.serve.is_replaceable, "a newer one may take it over"


def test_what_has_gone_since_it_was_asked_for_is_told(platform: Installation) -> None:
    source, folder = add_checkpoint(platform, 3)
    of_checkpoint = start(platform, CheckpointTarget(job=source.id, step=3))
    of_model = start(platform)
    folder.rmdir()
    with platform.write() as session:
        model = find_model(session, model_id=MODEL)
        assert model is not None
        model.path = None
        session.add(model)

    for job, code in ((of_checkpoint, "checkpoint_not_found"), (of_model, "model_not_ready")):
        with platform.read() as session, pytest.raises(DomainError) as refused:
            build_serve_spec(session, platform.settings, job)
        assert refused.value.code == code


def test_a_job_without_an_endpoint_has_nothing_to_serve(platform: Installation) -> None:
    job = platform.add_job(kind="serve", recipe="serve")

    with platform.read() as session, pytest.raises(DomainError, match="not found"):
        build_serve_spec(session, platform.settings, job)


# -- which idle one stops ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("idle_for_s", "own_s", "stops"), [(61, None, True), (59, None, False), (30, 20, True), (90, 120, False)]
)
def test_an_endpoint_stops_when_it_idles_for_longer_than_it_may(
    platform: Installation, idle_for_s: float, own_s: float | None, stops: bool
) -> None:
    job = start(platform, idle_timeout_s=own_s)
    become_ready(platform, job, idle_for_s=idle_for_s)

    stop_idle_endpoints()

    found = platform.get_job(job.id)
    assert (found.state, found.cause) == (
        (JobState.STOPPING, service.IDLE) if stops else (JobState.RUNNING, None)
    )
    assert (platform.attempt_dir(job) / STOP_FILE).exists() is stops


def test_one_that_was_used_meanwhile_goes_on(platform: Installation, monkeypatch: pytest.MonkeyPatch) -> None:
    job = start(platform)
    become_ready(platform, job, idle_for_s=90)
    look = service.is_idle
    looks: list[bool] = []

    def use_between_looks(row: Endpoint, current: Job, *, default_s: float) -> bool:
        if looks:
            row.last_used_at = utc_now()
        looks.append(look(row, current, default_s=default_s))
        return looks[-1]

    monkeypatch.setattr(service, "is_idle", use_between_looks)
    stop_idle_endpoints()

    assert looks == [True, False]
    assert platform.get_job(job.id).state == JobState.RUNNING


def test_one_that_is_being_loaded_does_not_idle(platform: Installation) -> None:
    job = start(platform)

    stop_idle_endpoints()

    assert platform.get_job(job.id).state == JobState.LAUNCHING


# -- how one is settled ------------------------------------------------------------------------


def reconcile_with(monkeypatch: pytest.MonkeyPatch, found: RayJob | None) -> Ray:
    ray = Ray(found)
    monkeypatch.setattr(reconcile_module, "get_ray", lambda: ray)
    reconcile()
    return ray


def test_an_engine_that_died_is_settled_by_the_sweep_itself(
    platform: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = start(platform)
    become_ready(platform, job)
    key = platform.attempt_dir(job) / ENGINE_KEY_FILE
    key.write_text("secret")

    reconcile_with(monkeypatch, ray_job(job, RayStatus.FAILED, exit_code=1))

    found = platform.get_job(job.id)
    assert (found.state, found.exit_code) == (JobState.FAILED, 1)
    assert not key.exists(), "the key outlives the engine"
    with platform.read() as session:
        assert service.state_of(find_endpoint(session, job), found) == "failed"


def test_an_endpoint_without_steps_is_no_stalled_training(
    platform: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = start(platform)
    become_ready(platform, job)
    looked: list[str] = []
    monkeypatch.setattr(reconcile_module, "_look_for_stall", lambda job, _: looked.append(job.id))
    monkeypatch.setattr(reconcile_module, "look_for_shortage", lambda *_: None)

    reconcile_with(monkeypatch, ray_job(job, RayStatus.RUNNING))
    training = platform.add_job()
    platform.attempt_dir(training).mkdir(parents=True)
    with platform.write() as session:
        assert jobs.claim_for_launch(session, job_id=training.id) is not None
    reconcile_with(monkeypatch, ray_job(training, RayStatus.RUNNING))

    assert looked == [training.id]
    assert platform.get_job(job.id).state == JobState.RUNNING


def test_nothing_follows_from_the_end_of_an_endpoint(
    platform: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = start(platform)
    become_ready(platform, job)
    followed: list[str] = []
    for name in ("_note_last_checkpoint", "_follow_up_evaluation"):
        monkeypatch.setattr(
            f"trellis_workers.jobs.settle.{name}", lambda *_, name=name: followed.append(name)
        )

    assert settle(platform.get_job(job.id), Settlement(JobState.STOPPED, 75))
    assert not settle(platform.get_job(job.id), Settlement(JobState.STOPPED, 75))

    assert followed == []
    assert platform.get_job(job.id).state == JobState.STOPPED


def test_a_checkpoint_that_was_only_kept_for_its_endpoint_goes_with_it(platform: Installation) -> None:
    source, folder = add_checkpoint(platform, 3, params={"keep_checkpoints": 1})
    serving = start(platform, CheckpointTarget(job=source.id, step=3))
    become_ready(platform, serving)
    with platform.write() as session:
        for step in (4, 5):
            session.add(make_checkpoint(source, step, folder.with_name(f"global_step_{step}")))
        session.flush()
        saved = checkpoints.apply_retention(session, job=jobs.get_locked_job(session, job_id=source.id))
    assert saved == [4]

    assert settle(platform.get_job(serving.id), Settlement(JobState.STOPPED, 75))

    with platform.read() as session:
        left = [row.step for row in list_checkpoints(session, job_id=source.id) if row.pruned_at is None]
    assert left == [5]


def test_one_that_stops_before_it_was_placed_is_ended_on_the_cluster(
    platform: Installation, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = start(platform)
    with platform.write() as session:
        jobs.request_stop(session, job_id=job.id)

    ray = reconcile_with(monkeypatch, ray_job(job, RayStatus.PENDING))

    assert ray.stopped == [jobs.submission_id(job)]
    assert platform.get_job(job.id).state == JobState.STOPPED


# -- adapters in the engine of their base ------------------------------------------------------


@pytest.fixture
def shared(install: Callable[..., Installation]) -> tuple[Installation, Job, str]:
    """A running engine, and the endpoint of an adapter that it was asked to load."""
    platform = install(TRELLIS_ENDPOINT_IDLE_S="60", TRELLIS_ENDPOINT_MAX_ADAPTERS="4")
    write_model_folder(platform.settings.data_root / "models" / "tiny")
    source, folder = add_checkpoint(platform, 3)
    (folder / "lora_adapter").mkdir()
    (folder / "lora_adapter" / "adapter_config.json").write_text('{"r": 8, "peft_type": "LORA"}')
    job = start(platform, CheckpointTarget(job=source.id, step=3))
    become_ready(platform, job)
    with platform.read() as session:
        (row,) = repository.list_sharing(session, job_id=job.id, attempt=1)
    return platform, job, row.id


def change(platform: Installation, endpoint_id: str, **values: Any) -> None:
    with platform.write() as session:
        row = repository.find_endpoint(session, endpoint_id=endpoint_id)
        assert row is not None
        for name, value in values.items():
            setattr(row, name, value)
        session.add(row)


def test_an_idle_adapter_and_then_its_engine_leave_in_one_sweep(
    shared: tuple[Installation, Job, str],
) -> None:
    platform, job, adapter = shared
    long_ago = utc_now() - timedelta(seconds=61)
    change(platform, adapter, ready_attempt=1, ready_at=long_ago)
    become_ready(platform, job, idle_for_s=61)

    stop_idle_endpoints()

    with platform.read() as session:
        row = repository.find_endpoint(session, endpoint_id=adapter)
        assert row is not None
        assert (row.asked_attempt, row.unloaded_for) == (None, "idle")
    assert platform.get_job(job.id).state == JobState.STOPPING


@pytest.mark.parametrize(("waited_s", "is_given_up"), [(590, False), (610, True)])
def test_an_adapter_that_the_engine_never_speaks_of_gets_an_engine_of_its_own(
    shared: tuple[Installation, Job, str], waited_s: float, is_given_up: bool
) -> None:
    platform, job, adapter = shared
    change(platform, adapter, asked_at=utc_now() - timedelta(seconds=waited_s))
    become_ready(platform, job, idle_for_s=waited_s)

    give_up_lost_loads()

    with platform.read() as session:
        row = repository.find_endpoint(session, endpoint_id=adapter)
        assert row is not None
        assert (row.engine_id is None) is is_given_up
        assert platform.get_job(row.job_id).state == (JobState.QUEUED if is_given_up else JobState.RUNNING)


def test_an_engine_that_no_endpoint_refers_to_is_stopped(platform: Installation) -> None:
    used = start(platform)
    become_ready(platform, used)
    orphan = platform.add_job(kind="serve", recipe="serve")
    with platform.write() as session:
        assert jobs.claim_for_launch(session, job_id=orphan.id) is not None
    platform.attempt_dir(orphan).mkdir(parents=True)

    stop_orphans()
    stop_orphans()

    found = platform.get_job(orphan.id)
    assert (found.state, found.cause) == (JobState.STOPPING, service.ORPHANED)
    assert (platform.attempt_dir(orphan) / STOP_FILE).exists()
    assert platform.get_job(used.id).state == JobState.RUNNING
