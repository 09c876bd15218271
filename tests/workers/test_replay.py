"""Runs that are repeated from the manifests that they wrote, on the same platform and on another."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlmodel import Session, delete
from trellis_api.core.columns import utc_now
from trellis_api.core.ids import new_id
from trellis_api.datasets.models import Dataset, DatasetVersion
from trellis_api.jobs.models import Attempt, Job
from trellis_api.jobs.replay import service
from trellis_api.jobs.replay.errors import CannotReplay
from trellis_api.jobs.replay.schemas import ReplayCreate, ReplayPlan
from trellis_api.models.models import Model
from trellis_contracts.attempt import COMPOSITION_FILE
from trellis_testing.datasets import add_dataset, add_version
from trellis_train.supervise.manifest import describe_run
from trellis_train.supervise.redaction import Redactor
from trellis_workers.jobs.launch import _prepare_training

from .conftest import Installation

MODEL, HASH = "mdl_aaaaaaaaaaaa", "a" * 64
SPLITS = {
    name: [{"prompt": f"{n}+1?", "answer": f"#### {n + 1}"} for n in range(count)]
    for name, count in (("train", 128), ("test", 32))
}


@pytest.fixture
def platform(install: Callable[..., Installation]) -> Installation:
    installed = install()
    with installed.write() as session:
        model = session.get(Model, MODEL)
        assert model is not None
        model.sha256, model.sha256_kind = HASH, "content"
        session.add(model)
    return installed


@pytest.fixture
def job(platform: Installation) -> Job:
    """A training with choices of every kind."""
    with platform.write() as session:
        dataset = add_dataset(session, platform.settings, SPLITS, name="more sums")
        dataset_id, version = dataset.id, str(dataset.head)
    return platform.add_job(
        name="learn sums",
        preset="cpu-tiny",
        seed=7,
        dataset_id=dataset_id,
        dataset_version=version,
        dataset_split="train",
        validation_dataset_id=dataset_id,
        validation_version=version,
        validation_split="test",
        params={"learning_rate": 3e-5},
        overrides={"trainer.log_val_generations": 3},
    )


@pytest.fixture
def manifest(platform: Installation, job: Job) -> dict[str, Any]:
    """As the run of the job writes it."""
    spec, record = _prepare_training(platform.settings, job)
    folder = platform.attempt_dir(job)
    folder.mkdir(parents=True)
    (folder / COMPOSITION_FILE).write_text(json.dumps(record, default=str))
    described = describe_run(spec, Redactor({}))
    described["git"] = {"commit": "old", "is_dirty": False}
    written: dict[str, Any] = json.loads(json.dumps(described, default=str))
    with platform.write() as session:
        session.add(Attempt(job_id=job.id, number=1, created_at=utc_now(), manifest=written))
    return written


def plan(platform: Installation, manifest: dict[str, Any], **more: Any) -> ReplayPlan:
    with platform.read() as session:
        wanted = ReplayCreate.model_validate({"manifest": manifest, **more})
        return service.plan(session, platform.settings, wanted=wanted)


def replay(platform: Installation, manifest: dict[str, Any], **more: Any) -> Job:
    wanted, planned = (
        ReplayCreate.model_validate({"manifest": manifest, **more}),
        plan(platform, manifest, **more),
    )
    with platform.write() as session:
        return service.replay(session, platform.settings, wanted=wanted, planned=planned)


def codes(found: ReplayPlan) -> list[str]:
    return [each.code for each in found.problems]


def test_the_same_run_is_queued_again(platform: Installation, job: Job, manifest: dict[str, Any]) -> None:
    planned = plan(platform, manifest)
    again = replay(platform, manifest)

    assert (planned.problems, planned.differences) == ([], [])
    assert (again.id != job.id, again.cloned_from, again.name) == (True, job.id, "learn sums")
    for name in (
        "recipe", "preset", "seed", "gpus", "model_id", "dataset_id", "dataset_version", "dataset_split",
        "validation_dataset_id", "validation_version", "validation_split", "params", "overrides",
    ):  # fmt: skip
        assert getattr(again, name) == getattr(job, name), name
    old, new = (_prepare_training(platform.settings, each)[0] for each in (job, platform.get_job(again.id)))
    assert new.params == old.params
    assert [each.replace(new.job_id, old.job_id) for each in new.engine_overrides] == old.engine_overrides


def test_a_manifest_without_the_request_gives_the_same_parameters(
    platform: Installation, job: Job, manifest: dict[str, Any]
) -> None:
    del manifest["request"]

    again = replay(platform, manifest, name="again")
    planned = plan(platform, manifest)

    old, new = (_prepare_training(platform.settings, each)[0] for each in (job, platform.get_job(again.id)))
    assert (again.name, new.params) == ("again", old.params)
    # Engine keys that were overridden by hand are only told by the request.
    (setting,) = planned.differences
    assert (setting.what, setting.name, setting.was) == ("setting", "trainer.log_val_generations", "3")


def _move_elsewhere(session: Session, platform: Installation) -> tuple[str, str]:
    """Let the rows and the weights be here under other ids only."""
    model = session.get(Model, MODEL)
    assert model is not None
    copy = Model(**{**model.model_dump(), "id": new_id("mdl"), "name": "copy"})
    model.sha256 = "b" * 64
    session.exec(delete(DatasetVersion))
    session.exec(delete(Dataset))
    session.add_all([copy, model])
    dataset = add_dataset(session, platform.settings, SPLITS, name="other")
    add_version(session, platform.settings, dataset.id, SPLITS["train"][:64])
    return copy.id, dataset.id


def test_on_another_platform_model_and_rows_are_found_by_their_hashes(
    platform: Installation, manifest: dict[str, Any]
) -> None:
    with platform.write() as session:
        model_id, dataset_id = _move_elsewhere(session, platform)
    manifest["job_id"] = "job_zzzzzzzzzzzz"

    planned = plan(platform, manifest)
    again = replay(platform, manifest)

    assert {(each.what, each.name) for each in planned.differences} == {
        ("model", "id"), ("data", "version"), ("validation_data", "version"),
    }  # fmt: skip
    assert (again.model_id, again.dataset_id, again.cloned_from) == (model_id, dataset_id, None)
    spec, _ = _prepare_training(platform.settings, platform.get_job(again.id))
    assert spec.train_data is not None
    assert (spec.train_data.sha256, spec.train_data.row_count) == (manifest["train_data"]["sha256"], 128)


def test_what_is_not_here_is_named_and_nothing_is_queued(
    platform: Installation, manifest: dict[str, Any]
) -> None:
    manifest["train_data"]["sha256"] = "c" * 64
    manifest["validation_data"]["split"] = "lost"
    changed = {**manifest, "model": {"model_id": MODEL, "sha256": "d" * 64}}
    lost = {**manifest, "model": {"model_id": "mdl_bbbbbbbbbbbb", "sha256": "d" * 64}}

    assert codes(plan(platform, changed)) == ["model_changed", "rows_missing", "rows_missing"]
    assert codes(plan(platform, lost))[0] == "model_missing"
    with pytest.raises(CannotReplay) as refused:
        replay(platform, lost)
    assert [each["field"] for each in refused.value.details or []] == [
        "model", "train_data", "validation_data",
    ]  # fmt: skip
    assert codes(plan(platform, {**manifest, "recipe": "lost"}))[0] == "unknown_recipe"


def test_masked_values_and_mistakes_are_problems(platform: Installation, manifest: dict[str, Any]) -> None:
    masked = {**manifest, "params": {**manifest["params"], "rewards": [{"id": "x", "options": {"a": "***"}}]}}
    wide = {**manifest, "hardware": {**manifest["hardware"], "gpus_asked": 4000}}

    assert codes(plan(platform, masked)) == ["value_masked"]
    assert codes(plan(platform, wide))[0] == "too_many_gpus"


def test_versions_code_machine_and_start_are_compared(
    platform: Installation, job: Job, manifest: dict[str, Any]
) -> None:
    newest = platform.add_job()
    with platform.write() as session:
        told = {"packages": {"made-up": "2"}, "git": {"commit": "new"}, "hardware": {"gpus": ["one GPU"]}}
        session.add(Attempt(job_id=newest.id, number=1, created_at=utc_now(), manifest=told))
    manifest |= {
        "packages": {"pydantic": "0.1", "made-up": "1", "unknown-here": "1"},
        "git": {"commit": "old", "is_dirty": True},
        "hardware": {"platform": "cuda", "gpus_asked": 1, "gpus": []},
        "resume_from": "checkpoints/x",
        "engine": "verl-sft",
    }
    manifest["params"] |= {"gone": 1}

    planned = plan(platform, manifest)

    assert planned.problems == []
    told_differences = {(each.what, each.name): (each.was, each.now) for each in planned.differences}
    assert told_differences.keys() == {
        ("start", "checkpoint"), ("hardware", "platform"), ("engine", "grpo"), ("package", "pydantic"),
        ("package", "made-up"), ("package", "unknown-here"), ("code", "commit"), ("code", "changes"),
        ("hardware", "gpus"), ("parameter", "gone"),
    }  # fmt: skip
    assert told_differences["package", "made-up"] == ("1", "2")
    # The newest run has not found them.
    assert told_differences["package", "pydantic"] == ("0.1", None)
