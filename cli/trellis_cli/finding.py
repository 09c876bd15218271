"""Finds what a person calls by its name; ids go through as they are."""

from typing import Any

from trellis_cli.client import ApiClient
from trellis_cli.errors import ExitCode, Problem


def find_dataset(client: ApiClient, called: str) -> str:
    """Id of the dataset of this id or name."""
    found = _find(client, called, prefix="ds_", path="/datasets", text=called)
    return _require(found, f"there is no dataset '{called}'", hint="trellis datasets list")


def find_pipeline(client: ApiClient, called: str) -> str | None:
    """Id of the saved pipeline of this id or name, if there is one."""
    return _find(client, called, prefix="pip_", path="/pipelines")


def find_model(client: ApiClient, called: str) -> str:
    """Id of the model of this id or name; of several of the name, the newest."""
    found = _find(client, called, prefix="mdl_", path="/models")
    return _require(found, f"there is no model '{called}'", hint="trellis models list")


def look_for_model(client: ApiClient, called: str) -> str | None:
    """Id of the model of this id or name, if there is one."""
    return _find(client, called, prefix="mdl_", path="/models")


def name_to_ids(client: ApiClient, request: dict[str, Any]) -> dict[str, Any]:
    """A job's request with the ids of the model and the datasets that it calls by name."""
    finders = {"model": find_model, "dataset": find_dataset, "validation_dataset": find_dataset}
    found = {
        field: finder(client, request[field])
        for field, finder in finders.items()
        if isinstance(request.get(field), str)
    }
    return {**request, **found}


def find_environment(client: ApiClient, called: str) -> str:
    """Id of the environment of this id or name."""
    found = _find(client, called, prefix="env_", path="/environments")
    return _require(found, f"there is no environment '{called}'", hint="trellis environments list")


def find_workflow(client: ApiClient, called: str) -> str:
    """Id of the workflow file of this id or name."""
    found = _find(client, called, prefix="wfl_", path="/workflows")
    return _require(found, f"there is no workflow '{called}'", hint="the launch page lists workflow files")


def find_job_pipeline(client: ApiClient, called: str) -> str:
    """Id of the pipeline of jobs of this id or name; of several of the name, the newest."""
    found = _find(client, called, prefix="jpl_", path="/job-pipelines")
    return _require(found, f"there is no pipeline of jobs '{called}'", hint="trellis job-pipelines list")


def _find(client: ApiClient, called: str, *, prefix: str, path: str, **filters: Any) -> str | None:
    if called.startswith(prefix):
        return called
    return next((str(each["id"]) for each in client.pages(path, **filters) if each["name"] == called), None)


def _require(found: str | None, message: str, *, hint: str) -> str:
    if found is None:
        raise Problem(message, hint=hint, exit_code=ExitCode.REFUSED)
    return found
