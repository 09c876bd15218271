"""The same tasks on a Ray cluster whose machines share the folder of the run."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trellis_data.pipeline.executors import Watch
from trellis_data.pipeline.problem import PipelineProblem
from trellis_data.pipeline.tasks import Task, label_of, run_task


@dataclass
class RayExecutor:
    """A Ray task for each of ours; joins the cluster at an address, of ``RAY_ADDRESS`` or of this process."""

    address: str | None = None
    peak_bytes: int = 0

    def run(self, tasks: Sequence[Task], watch: Watch) -> None:
        try:
            import ray
            from ray.exceptions import RayError, RayTaskError
        except ImportError as error:
            raise PipelineProblem(
                "ray_missing", "executor 'ray' needs the package ray; install it, or use 'processes'."
            ) from error
        if not ray.is_initialized():
            ray.init(address=self.address or os.environ.get("RAY_ADDRESS", "auto"), log_to_driver=False)
        remote = ray.remote(max_retries=1)(_run)
        running: dict[Any, int] = {remote.remote(task): index for index, task in enumerate(tasks)}
        try:
            while running:
                ready, _ = ray.wait(list(running), timeout=0.2)
                for reference in ready:
                    index = running.pop(reference)
                    watch.rows(index, _result(ray, reference, tasks[index], (RayTaskError, RayError)))
                    watch.done(index)
                watch.check()
        finally:
            for reference in running:
                ray.cancel(reference, force=True)

    def close(self) -> None:
        """The cluster belongs to somebody else."""


def _result(ray: Any, reference: Any, task: Task, errors: tuple[Any, Any]) -> int:
    task_error, any_error = errors
    try:
        return int(ray.get(reference))
    except task_error as error:
        if isinstance(error.cause, PipelineProblem):
            raise error.cause from error
        raise PipelineProblem("task_failed", f"{label_of(task)}: {error}", shard=label_of(task)) from error
    except any_error as error:
        raise PipelineProblem(
            "worker_died", f"Ray could not finish {label_of(task)}: {error}", shard=label_of(task)
        ) from error


def _run(task: Task) -> int:
    """On a machine of the cluster: the rows that were done."""
    done = 0

    def count(rows: int) -> None:
        nonlocal done
        done += rows

    run_task(task, count)
    return done
