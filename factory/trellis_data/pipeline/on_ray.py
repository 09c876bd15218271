"""The same tasks on a Ray cluster whose machines share the folder of the run."""

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from trellis_data.pipeline.executors import Watch
from trellis_data.pipeline.problem import PipelineProblem
from trellis_data.pipeline.tasks import Task, label_of, run_task

_CONNECT_S = 10.0


@dataclass
class RayExecutor:
    """A Ray task for each of ours; joins the cluster at an address, of ``RAY_ADDRESS`` or of this process."""

    address: str | None = None
    peak_bytes: int = 0
    #: Variables of this process that hold keys which steps need: the cluster itself has none.
    keys: Sequence[str] = ()

    def run(self, tasks: Sequence[Task], watch: Watch) -> None:
        try:
            import ray
            from ray.exceptions import RayError, RayTaskError
        except ImportError as error:
            raise PipelineProblem(
                "ray_missing", "executor 'ray' needs the package ray; install it, or use 'processes'."
            ) from error
        self._join(ray)
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

    def _join(self, ray: Any) -> None:
        if ray.is_initialized():
            return
        address = self.address or os.environ.get("RAY_ADDRESS", "auto")
        try:
            _knock(address)
            given = {name: os.environ[name] for name in self.keys if name in os.environ}
            ray.init(address=address, log_to_driver=False, runtime_env={"env_vars": given} if given else None)
        except (OSError, RuntimeError, ValueError) as error:  # away, another version, no address at all
            where = (
                "No Ray cluster was found" if address == "auto" else f"The Ray cluster at {address} is away"
            )
            raise PipelineProblem(
                "ray_unreachable", f"{where} ({error}). Name one in RAY_ADDRESS, or use executor 'processes'."
            ) from error

    def close(self) -> None:
        """Do nothing: the cluster belongs to the caller."""


def _knock(address: str) -> None:
    """Raise ``OSError`` where nothing listens: Ray itself would go on trying for minutes."""
    host, _, port = address.rpartition(":")
    if host and "/" not in host and port.isdigit():
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_S):
            return


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
    """Run a task on a machine of the cluster and return the number of rows done."""
    done = 0

    def count(rows: int) -> None:
        nonlocal done
        done += rows

    run_task(task, count)
    return done
