"""One queued job for each engine, on data that the engine reads."""

from collections.abc import Callable
from typing import Any

from trellis_api.core.columns import utc_now
from trellis_api.endpoints import service as endpoints
from trellis_api.endpoints.schemas import EndpointStart
from trellis_api.evaluations.create import create
from trellis_api.evaluations.schemas import EvaluationCreate, ModelTarget
from trellis_api.jobs.exports import service as exports
from trellis_api.jobs.models import Checkpoint, Job
from trellis_api.jobs.schemas import ExportCreate
from trellis_contracts.states import JobState

from trellis_testing.datasets import add_dataset
from trellis_testing.evaluations import install_gsm8k
from trellis_testing.model_folders import write_model_folder

_PAIRS = [{"prompt": f"{n}+1?", "chosen": f"{n + 1}", "rejected": f"{n + 2}"} for n in range(512)]
_QUERIES = [
    {
        "data_source": "tools",
        "prompt": [{"role": "user", "content": f"What is the weather in town {n}?"}],
        "ability": "retrieval",
        "reward_model": {"style": "rule", "ground_truth": f"tool_{n}"},
        "extra_info": {"index": n, "tool": f'{{"name": "tool_{n}", "description": "weather {n}"}}'},
    }
    for n in range(512)
]


def queue_training(recipe: str, rows: list[dict[str, Any]] | None = None) -> Callable[..., Job]:
    """Return a function that queues a training by ``recipe``; on sums if no rows are given."""

    def queue(platform: Any, *, gpus: int = 1) -> Job:
        dataset_id = "ds_aaaaaaaaaaaa"
        if rows is not None:
            with platform.write() as session:
                dataset_id = add_dataset(session, platform.settings, rows).id
        job: Job = platform.add_job(recipe=recipe, dataset_id=dataset_id, gpus=gpus)
        return job

    return queue


def queue_export(platform: Any, *, gpus: int = 1) -> Job:
    """Queue an export of a checkpoint of a training on as many GPUs."""
    source = platform.add_job(state=JobState.SUCCEEDED, gpus=gpus)
    folder = platform.settings.checkpoint_dir(source.id) / "global_step_3"
    folder.mkdir(parents=True)
    (folder / "weights").write_bytes(b"x" * 100)
    values = {"job_id": source.id, "step": 3, "attempt": 1, "path": str(folder), "size_bytes": 100}
    with platform.write() as session:
        session.add(Checkpoint(**values, created_at=utc_now()))
    with platform.write() as session:
        return exports.request_export(
            session,
            job_id=source.id,
            step=3,
            request=ExportCreate(name=f"model of {source.id}"),
            settings=platform.settings,
        )


def queue_evaluation(platform: Any, *, gpus: int = 1) -> Job:
    """Queue an evaluation by an engine that is spread over as many GPUs."""
    install_gsm8k(platform)
    body = {
        "targets": [{"kind": "model", "model": "mdl_aaaaaaaaaaaa"}],
        "benchmarks": [{"benchmark": "gsm8k"}],
        "engine": {"tensor_parallel": gpus},
    }
    with platform.write() as session:
        (row,) = create(session, platform.settings, request=EvaluationCreate.model_validate(body))
    job: Job = platform.get_job(row.job_id)
    return job


def queue_endpoint(platform: Any, *, gpus: int = 1) -> Job:
    """Queue an endpoint of a model; the platform gives each one GPU."""
    write_model_folder(platform.settings.data_root / "models" / "tiny")
    target = ModelTarget(model="mdl_aaaaaaaaaaaa")
    with platform.write() as session:
        _, job = endpoints.start(session, platform.settings, target=target, request=EndpointStart())
    started: Job = platform.get_job(job.id)
    assert started.gpus == gpus
    return started


#: By recipe, or by the kind of a job that has none.
QUEUE: dict[str, Callable[..., Job]] = {
    "grpo": queue_training("grpo"),
    "sft": queue_training("sft"),
    "dpo": queue_training("dpo", _PAIRS),
    "reward_model": queue_training("reward_model", _PAIRS),
    "agent_retrieval": queue_training("agent_retrieval", _QUERIES),
    "export": queue_export,
    "evaluation": queue_evaluation,
    "serve": queue_endpoint,
}
