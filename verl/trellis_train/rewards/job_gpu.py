"""A reward model on one of the job's own GPUs: a Ray actor in the placement group that the trainer is in.

Ray shows every GPU of a node to a process that was given none, such as the reward worker: there, ``cuda``
would be the node's first GPU, whichever job that belongs to, or no GPU at all.
"""

import os
from pathlib import Path
from typing import Any

VISIBLE_DEVICES = "CUDA_VISIBLE_DEVICES"
#: Ray's smallest share of a GPU: the trainer's processes hold the rest, and memory is not counted.
_GPU_SHARE = 0.0001
_GPU, _CREATED = "GPU", "CREATED"


class JobGpuModel:
    """The reward model, in an actor's process."""

    def __init__(self, folder: str, options: dict[str, Any]) -> None:
        self._folder, self._options = folder, options
        self._model: Any = None

    def load(self) -> str:
        """Load the model onto the GPU that Ray gave this actor; what ``CUDA_VISIBLE_DEVICES`` then says."""
        import ray

        # Before torch is imported. verl may have switched off that Ray sets it.
        os.environ[VISIBLE_DEVICES] = ",".join(ray.get_runtime_context().get_accelerator_ids()[_GPU])
        from trellis_train.rewards.reward_model_worker import RewardModel

        self._model = RewardModel(Path(self._folder), **self._options)
        return os.environ[VISIBLE_DEVICES]

    def score(self, batch: list[dict[str, Any]]) -> list[float]:
        """Return one number for each pair of messages and response."""
        scores: list[float] = self._model.score(batch)
        return scores


def start_on_job_gpu(folder: str, options: dict[str, Any]) -> Any:
    """Start an actor with the model and return its handle; ``LookupError`` if the job has no GPUs."""
    import ray
    from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

    name, bundle = find_gpu_bundle()
    strategy = PlacementGroupSchedulingStrategy(
        placement_group=ray.util.get_placement_group(name), placement_group_bundle_index=bundle
    )
    actor_class = ray.remote(JobGpuModel)
    return actor_class.options(num_cpus=0, num_gpus=_GPU_SHARE, scheduling_strategy=strategy).remote(
        folder, options
    )


def find_gpu_bundle() -> tuple[str, int]:
    """Find the name of the job's placement group with GPUs, and its last bundle: the first holds rank 0."""
    import ray

    job_id = ray.get_runtime_context().get_job_id()
    for identifier, group in ray.util.placement_group_table().items():
        bundles = [number for number, each in group["bundles"].items() if each.get(_GPU)]
        # The id of a placement group ends in that of the job that made it.
        if identifier.endswith(job_id) and group["state"] == _CREATED and bundles:
            return group["name"], max(bundles)
    raise LookupError(f"Ray job {job_id} has no placement group with GPUs")
