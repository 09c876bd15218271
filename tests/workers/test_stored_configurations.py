"""A job is composed once, at its submission: launches run what was previewed, whatever changes meanwhile."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from trellis_api.jobs import configuration, submit
from trellis_api.jobs.models import Job
from trellis_api.jobs.schemas import JobClone, JobCreate, JobPreview
from trellis_api.workflows import service as workflows
from trellis_api.workflows.schemas import WorkflowCreate
from trellis_contracts.attempt import COMPOSITION_FILE, SPEC_FILE
from trellis_contracts.recipe import Recipe
from trellis_recipes import catalogue
from trellis_testing.kinds_of_jobs import QUEUE
from trellis_workers.jobs.launch import CannotLaunchError, _prepare_training, _write_attempt

from .conftest import Installation

MODEL, DATASET = "mdl_aaaaaaaaaaaa", "ds_aaaaaaaaaaaa"
_JOB = re.compile(r"job_[a-z2-7]{12}")


def preview_and_submit(platform: Installation, **choices: Any) -> tuple[JobPreview, Job]:
    request = JobCreate.model_validate({"name": "test", "model": MODEL, "dataset": DATASET, **choices})
    with platform.read() as session:
        shown = submit.preview(session, request=request, settings=platform.settings, with_forecast=False)
    assert shown.errors == []
    with platform.write() as session:
        job = submit.submit(session, request=request, settings=platform.settings)
    return shown, platform.get_job(job.id)


def launch(platform: Installation, job: Job) -> tuple[dict[str, Any], dict[str, Any]]:
    """The spec and the record of its making that a launch writes."""
    _write_attempt(platform.settings, job, "token")
    folder = platform.attempt_dir(job)
    return json.loads((folder / SPEC_FILE).read_text()), json.loads((folder / COMPOSITION_FILE).read_text())


def without_ids(value: Any) -> Any:
    """The same with all jobs under one id: a preview is of a job that never is."""
    return json.loads(_JOB.sub("job", json.dumps(value)))


def change_recipes(monkeypatch: pytest.MonkeyPatch, change: Callable[[Recipe], None]) -> None:
    """As an upgrade does."""
    changed = {recipe.id: recipe.model_copy(deep=True) for recipe in catalogue.list_recipes()}
    for recipe in changed.values():
        change(recipe)
    monkeypatch.setattr(catalogue, "_recipes", lambda: changed)


def change_everything(recipe: Recipe) -> None:
    """Change presets and defaults, and add a parameter that an agent is told."""
    for preset in recipe.presets:
        preset.params["learning_rate"] = 0.123
    recipe.parameters.append(
        recipe.parameters[0].model_copy(update={"name": "new", "group": "agent", "engine_keys": []})
    )
    for parameter in recipe.parameters:
        if parameter.name == "epochs":
            parameter.default = 77
    recipe.fixed.clear()


def add_choices(platform: Installation, recipe: str) -> dict[str, Any]:
    """What a request of the recipe needs."""
    if recipe == "tune":
        code = "async def solve(task, model):\n    return await model.chat(task['prompt'])\n"
        with platform.write() as session:
            file = workflows.add_workflow(
                session, platform.settings, request=WorkflowCreate(name="mine", code=code)
            )
            return {"params": {"workflow": file.id}}
    return {"dataset": QUEUE[recipe](platform).dataset_id}


@pytest.mark.parametrize("recipe", ["sft", "grpo", "dpo", "agent_retrieval", "tune"])
def test_what_was_previewed_runs_whatever_becomes_of_the_recipe(
    install: Any, recipe: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    choices = add_choices(platform, recipe)
    shown, job = preview_and_submit(platform, recipe=recipe, **choices)
    change_recipes(monkeypatch, change_everything)

    spec, record = launch(platform, job)

    assert (spec["params"], spec["env"], spec["engine"]) == (shown.params, shown.env, shown.engine)
    # On the machine of the preview the launch part is the same, but for the job's id.
    assert without_ids(spec["engine_overrides"]) == without_ids(shown.engine_overrides)
    assert without_ids(record["config"]) == without_ids(shown.config)
    assert without_ids(record["command"]) == without_ids(shown.command)
    assert shown.data is not None
    assert (spec["train_data"]["format"], spec["train_data"]["columns"]) == (
        shown.data.read_as,
        shown.data.columns,
    )
    assert "new" not in ((spec["agent"] or {}).get("options") or {})
    assert record["composed_with"]["packages"]["trellis-platform"]


def test_a_resumed_attempt_runs_the_same_and_a_clone_is_composed_anew(
    install: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    _, job = preview_and_submit(platform, recipe="sft", preset="cpu-tiny")
    first, _ = _prepare_training(platform.settings, job)
    change_recipes(monkeypatch, change_everything)
    with platform.write() as session:
        row = session.get(Job, job.id)
        assert row is not None
        checkpoint = str(platform.settings.checkpoint_dir(job.id) / "global_step_3")
        row.attempt, row.resume_from = 2, checkpoint
        cloned = submit.clone(session, job_id=job.id, changes=JobClone(), settings=platform.settings)

    second, _ = _prepare_training(platform.settings, platform.get_job(job.id))
    other, _ = _prepare_training(platform.settings, platform.get_job(cloned.id))

    assert second.params == first.params
    assert set(second.engine_overrides) - set(first.engine_overrides) == {
        f"data.train_files={second.attempt_dir}/prepared/train.parquet",
        f"data.val_files={second.attempt_dir}/prepared/validation.parquet",
        f"trainer.resume_from_path={checkpoint}",
        "trainer.resume_mode=resume_path",
    }
    assert (second.attempt, second.resume_from) == (2, checkpoint)
    assert other.params["learning_rate"] == 0.123 != first.params["learning_rate"]


@pytest.mark.parametrize(
    ("preset", "kept"), [(None, "gpu-24gb"), ("cpu-tiny", "gpu-24gb"), ("gpu-80gb", "gpu-80gb")]
)
def test_a_clone_on_another_platform_does_not_keep_the_sizes_for_the_first(
    install: Any, preset: str | None, kept: str
) -> None:
    platform = install()
    _, job = preview_and_submit(platform, recipe="sft", preset=preset)
    settings = platform.settings.model_copy(update={"platform": "cuda", "slots": 8})

    with platform.write() as session:
        cloned = submit.clone(session, job_id=job.id, changes=JobClone(), settings=settings)
        again = submit.clone(session, job_id=job.id, changes=JobClone(), settings=platform.settings)

    assert job.preset == (preset or "cpu-tiny")
    assert (cloned.preset, again.preset) == (kept, job.preset)


def test_a_job_from_before_is_composed_at_its_launch(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    platform = install()
    job = platform.add_job(recipe="sft", preset="cpu-tiny")
    with platform.read() as session:
        assert configuration.find(session, job_id=job.id) is None
    change_recipes(monkeypatch, lambda recipe: recipe.presets[0].params.update(learning_rate=0.123))

    spec, record = launch(platform, job)

    assert spec["params"]["learning_rate"] == 0.123
    assert record["config"]["optim"]["lr"] == 0.123


def test_attempts_of_a_job_from_before_run_what_its_first_launch_was_composed_to(
    install: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = install()
    job = platform.add_job(recipe="sft", preset="cpu-tiny")
    first, _ = launch(platform, job)
    change_recipes(monkeypatch, change_everything)

    second, _ = launch(platform, job)

    assert second["params"] == first["params"]
    assert second["engine_overrides"] == first["engine_overrides"]


def test_a_job_configured_for_another_platform_says_so(install: Any) -> None:
    platform = install()
    _, job = preview_and_submit(platform, recipe="sft")
    settings = platform.settings.model_copy(update={"platform": "cuda"})

    with pytest.raises(CannotLaunchError, match="configured for the platform cpu") as refused:
        _prepare_training(settings, job)

    assert refused.value.cause == "other_platform"
