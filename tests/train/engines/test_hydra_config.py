"""verl's configuration as a job spec asks for it."""

from typing import Any

import pytest
from trellis_contracts.spec import JobSpec
from trellis_train.engines.hydra_config import compose_config


def make_spec(**changes: Any) -> JobSpec:
    fields: dict[str, Any] = {
        "job_id": "job_a",
        "attempt": 1,
        "name": "a",
        "recipe": "grpo",
        "engine": "verl-ppo",
        "platform": "cpu",
        "gpus": 1,
        "seed": 0,
        "params": {},
        "engine_overrides": [],
        "model": {"model_id": "m", "path": "/models/m"},
        "row_format": "verl-rl",
        "train_data": {
            "dataset_id": "d",
            "paths": ["/d.parquet"],
            "format": "verl-rl",
            "sha256": "0",
            "row_count": 1,
        },
        "attempt_dir": "/jobs/a/attempt-1",
        "checkpoint_dir": "/jobs/a/checkpoints",
        "ingest_url": "http://127.0.0.1:1",
    }
    return JobSpec.model_validate(fields | changes)


def test_a_first_attempt_ignores_checkpoints_that_lie_in_its_folder() -> None:
    assert compose_config(make_spec()).trainer.resume_mode == "disable"


def test_a_resumed_attempt_continues_from_its_checkpoint() -> None:
    config = compose_config(make_spec(resume_from="/jobs/a/checkpoints/global_step_4"))

    assert config.trainer.resume_mode == "resume_path"
    assert config.trainer.resume_from_path == "/jobs/a/checkpoints/global_step_4"


@pytest.mark.parametrize("folder", ["/data root/it's/a=b,c", "/ünï/{x}", r"/back\slash", "/dollar$/(x)"])
def test_a_folder_of_any_name_arrives_as_it_is(folder: str) -> None:
    assert compose_config(make_spec(checkpoint_dir=folder)).trainer.default_local_dir == folder


def test_the_jobs_own_overrides_apply() -> None:
    config = compose_config(make_spec(engine_overrides=["data.train_batch_size=7"]))

    assert config.data.train_batch_size == 7


def test_an_agent_loop_manager_that_the_job_names_is_kept() -> None:
    key = "actor_rollout_ref.rollout.agent.agent_loop_manager_class"
    config = compose_config(make_spec(engine_overrides=[f"++{key}=mine.Manager"]))

    assert config.actor_rollout_ref.rollout.agent.agent_loop_manager_class == "mine.Manager"


SAMPLER = "actor_rollout_ref.rollout"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, "vllm.v1.executor.uniproc_executor.UniProcExecutor"),
        ({"gpus": 2}, "vllm.v1.executor.uniproc_executor.UniProcExecutor"),
        ({"split": 2}, None),
        ({"platform": "cuda"}, None),
        ({"engine_overrides": [f"++{SAMPLER}.engine_kwargs.vllm.distributed_executor_backend=mp"]}, "mp"),
    ],
)
def test_a_sampler_on_a_cpu_that_is_not_split_is_one_process(
    changes: dict[str, Any], expected: str | None
) -> None:
    changes = dict(changes)
    overrides = [
        f"{SAMPLER}.tensor_model_parallel_size={changes.pop('split', 1)}",
        *changes.pop("engine_overrides", []),
    ]
    config = compose_config(make_spec(engine_overrides=overrides, **changes))

    kwargs = config.actor_rollout_ref.rollout.engine_kwargs
    assert (kwargs.get("vllm") or {}).get("distributed_executor_backend") == expected
