"""What is suggested for a failed job: changes of its parameters, or another attempt as it was."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.database import Database
from trellis_api.datasets.models import Dataset
from trellis_api.jobs import repository
from trellis_api.jobs.failures import remedies
from trellis_api.jobs.failures.hints import HINTS
from trellis_api.jobs.failures.remedies import REMEDIES, RESUME_HELPS, helps_to_resume, suggest_changes
from trellis_api.jobs.models import Job
from trellis_api.models.models import Model
from trellis_contracts.states import JobState
from trellis_recipes.catalogue import get_recipe


def failed(cause: str | None, recipe: str = "grpo", state: JobState = JobState.FAILED, **params: Any) -> Job:
    return Job(
        id="job_a", name="a", recipe=recipe, model_id="mdl_a", params=params, overrides={}, seed=1, gpus=1,
        state=state, cause=cause,
    )  # fmt: skip


def suggested(job: Job) -> dict[str, Any]:
    return {change.parameter: change.suggested for change in suggest_changes(job)}


def test_every_cause_with_a_remedy_has_a_hint() -> None:
    assert (REMEDIES.keys() | RESUME_HELPS) - HINTS.keys() == set()


@pytest.mark.parametrize(
    ("cause", "params", "expected"),
    [
        ("cuda_out_of_memory", {"micro_batch_size": 8}, {"micro_batch_size": 4}),
        ("cuda_out_of_memory", {}, {"micro_batch_size": 1}),
        (
            "out_of_memory",
            {"micro_batch_size": 1, "max_tokens_per_gpu": 4096},
            {"max_tokens_per_gpu": 2048},
        ),
        ("out_of_memory", {"micro_batch_size": 1}, {"max_response_length": 512}),
        ("prompt_too_long", {"max_prompt_length": 600}, {"max_prompt_length": 1200}),
        ("disk_full", {}, {"keep_checkpoints": 1}),
        ("disk_full", {"keep_checkpoints": 1}, {}),
        ("non_finite_loss", {"learning_rate": 1e-4}, {"learning_rate": 5e-5}),
        ("bad_configuration", {}, {}),
        (None, {}, {}),
    ],
)
def test_a_known_cause_has_a_change(
    cause: str | None, params: dict[str, Any], expected: dict[str, Any]
) -> None:
    assert suggested(failed(cause, **params)) == expected


def test_changes_start_from_the_values_that_the_job_was_composed_with(
    client: TestClient, database: Database, model: Model, dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"name": "a", "recipe": "sft", "preset": "cpu-tiny", "model": model.id, "dataset": dataset.id}
    job_id = client.post("/api/v1/jobs", json=body).json()["id"]
    composed = client.post("/api/v1/jobs/preview", json=body).json()["params"]["learning_rate"]
    with database.write() as session:
        job = repository.lock_job(session, job_id=job_id)
        assert job is not None
        job.state, job.cause = JobState.FAILED, "non_finite_loss"
        session.add(job)
    later = get_recipe("sft").model_copy(deep=True)
    for preset in later.presets:
        preset.params["learning_rate"] = 0.5
    monkeypatch.setattr(remedies, "get_recipe", lambda _name: later)

    changes = client.get(f"/api/v1/jobs/{job_id}").json()["failure"]["changes"]

    assert [(change["current"], change["suggested"]) for change in changes] == [(composed, composed / 2)]


def test_a_resume_is_of_use_only_where_the_run_would_not_fail_alike() -> None:
    assert helps_to_resume(failed("node_lost", state=JobState.CRASHED))
    assert helps_to_resume(failed(None, state=JobState.CRASHED))
    assert not helps_to_resume(failed("bad_configuration"))
    assert not helps_to_resume(failed("cuda_out_of_memory", state=JobState.CRASHED))
    assert not helps_to_resume(failed(None))
