"""Waits for work that the platform's workers carry out."""

import time
from collections.abc import Callable, Container
from typing import Annotated, Any

import typer

from trellis_cli.client import ApiClient
from trellis_cli.errors import ExitCode, Problem

_PAUSE_S = 0.3
#: The API may be restarted meanwhile; that long it may be away.
_PATIENCE_S = 60.0
#: States of a model whose files are on their way.
WAITING = ("pending", "fetching")
#: States in which a task on data or a transfer is over.
OVER = ("succeeded", "failed", "cancelled")

WaitForEnd = Annotated[bool, typer.Option(help="Wait until it has stopped.")]
Look = Callable[[dict[str, Any]], None]


def wait_for_dataset(
    client: ApiClient,
    dataset_id: str,
    *,
    timeout_s: float | None = None,
    look: Look = lambda task: None,  # noqa: ARG005 - nobody looks on
) -> dict[str, Any]:
    """Wait until the dataset has rows; ``look`` is shown its task. Raise with the reason if it fails."""
    ends = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        dataset = read_patiently(client, f"/datasets/{dataset_id}")
        task = dataset.get("task") or {}
        if dataset["state"] == "ready":
            return dataset
        if dataset["state"] == "failed":
            raise Problem(f"'{dataset['name']}' has no rows: {task.get('reason') or 'its import failed'}")
        if task:
            look(task)
        _pause(ends, f"'{dataset['name']}' has no rows yet")


def wait_for_task(
    client: ApiClient,
    task_id: str,
    *,
    timeout_s: float | None = None,
    look: Look = lambda task: None,  # noqa: ARG005 - nobody looks on
) -> dict[str, Any]:
    """Wait until a data task has succeeded; raise with the reason if it does not."""
    ends = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        task = read_patiently(client, f"/data-tasks/{task_id}")
        if task["state"] == "succeeded":
            return task
        if task["state"] in OVER:
            raise Problem(f"{task['kind']} {task_id} has {task['state']}: {task['reason']}")
        look(task)
        _pause(ends, f"{task['kind']} {task_id} is {task['state']}")


def wait_for_model(
    client: ApiClient,
    model_id: str,
    *,
    timeout_s: float | None = None,
    look: Look = lambda model: None,  # noqa: ARG005 - nobody looks on
) -> dict[str, Any]:
    """Wait until the model's files have been fetched; raise with the reason if that fails."""
    ends = None if timeout_s is None else time.monotonic() + timeout_s
    while True:
        model = read_patiently(client, f"/models/{model_id}")
        if model["state"] == "ready":
            return model
        if model["state"] not in WAITING:
            raise Problem(
                f"'{model['name']}' could not be downloaded: {model['state_reason']}",
                hint=f"trellis models resume {model['id']}",
            )
        look(model)
        _pause(ends, f"'{model['name']}' is {model['state']}")


def wait_for_end(client: ApiClient, path: str, over: Container[str] = OVER) -> dict[str, Any]:
    """Wait until the object at ``path`` has one of the states ``over``, and return it."""
    while (found := read_patiently(client, path))["state"] not in over:
        time.sleep(_PAUSE_S)
    return found


def read_patiently(client: ApiClient, path: str, **params: Any) -> dict[str, Any]:
    """Get an object; while the API is away, as during a restart, retry for some time."""
    gives_up = time.monotonic() + _PATIENCE_S
    while True:
        try:
            return dict(client.get(path, **params))
        except Problem as problem:
            if problem.exit_code != ExitCode.UNREACHABLE or time.monotonic() > gives_up:
                raise
        time.sleep(_PAUSE_S)


def _pause(ends: float | None, state: str) -> None:
    if ends is not None and time.monotonic() > ends:
        raise Problem(
            f"{state}, and the time is over",
            hint="check the workers with trellis status",
            exit_code=ExitCode.UNREACHABLE,
        )
    time.sleep(_PAUSE_S)
