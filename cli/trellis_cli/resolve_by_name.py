"""Finds what a person calls by its name; ids go through as they are."""

from collections.abc import Container
from typing import Any

from trellis_cli.client import ApiClient
from trellis_cli.errors import ExitCode, Problem


def find_dataset(client: ApiClient, called: str) -> str:
    """Return the id of the dataset of this id or name."""
    return _require(
        look_for_dataset(client, called), f"no dataset named '{called}'", hint="trellis datasets list"
    )


def look_for_dataset(client: ApiClient, called: str) -> str | None:
    """Return the id of the dataset of this id or name, or None."""
    return _find(client, called, prefix="ds_", path="/datasets", text=called)


def find_pipeline(client: ApiClient, called: str) -> str | None:
    """Return the id of the saved pipeline of this id or name, or None."""
    return _find(client, called, prefix="pip_", path="/pipelines")


def find_model(client: ApiClient, called: str, *, must_be_one: bool = False) -> str:
    """Return the id of the model of this id or name; of several the newest, as in ``find_job``."""
    found = _find(client, called, prefix="mdl_", path="/models", must_be_one=must_be_one)
    return _require(found, f"no model named '{called}'", hint="trellis models list")


def look_for_model(client: ApiClient, called: str) -> str | None:
    """Return the id of the model of this id or name, or None."""
    return _find(client, called, prefix="mdl_", path="/models")


def name_to_ids(client: ApiClient, request: dict[str, Any]) -> dict[str, Any]:
    """Replace the names in a job's request with ids: model, datasets, environment and workflow."""
    finders = {"model": find_model, "dataset": find_dataset, "validation_dataset": find_dataset}
    found: dict[str, Any] = {
        field: finder(client, request[field])
        for field, finder in finders.items()
        if isinstance(request.get(field), str)
    }
    params = request.get("params")
    if isinstance(params, dict):
        parameters = {"environment": find_environment, "workflow": find_workflow}
        named = {
            parameter: finder(client, params[parameter])
            for parameter, finder in parameters.items()
            if isinstance(params.get(parameter), str)
        }
        found |= {"params": {**params, **named}} if named else {}
    return {**request, **found}


def find_job(client: ApiClient, called: str, *, must_be_one: bool = False) -> str:
    """Return the id of the job of this id or name; of several the newest, or fail if ``must_be_one``."""
    found = _find(client, called, prefix="job_", path="/jobs", must_be_one=must_be_one, text=called)
    return _require(found, f"no job named '{called}'", hint="trellis jobs list")


def find_evaluation(client: ApiClient, called: str, *, must_be_one: bool = False) -> str:
    """Return the id of the evaluation of this id or name; of several the newest, as in ``find_job``."""
    found = _find(client, called, prefix="ev_", path="/evaluations", must_be_one=must_be_one)
    return _require(found, f"no evaluation named '{called}'", hint="trellis evaluations list")


def find_report(client: ApiClient, called: str, *, must_be_one: bool = False) -> str:
    """Return the id of the report of this id or name; of several the newest, as in ``find_job``."""
    found = _find(client, called, prefix="rep_", path="/reports", must_be_one=must_be_one)
    return _require(found, f"no report named '{called}'", hint="trellis reports list")


def find_environment(client: ApiClient, called: str) -> str:
    """Return the id of the environment of this id or name."""
    found = _find(client, called, prefix="env_", path="/environments")
    return _require(found, f"no environment named '{called}'", hint="trellis environments list")


def find_workflow(client: ApiClient, called: str) -> str:
    """Return the id of the workflow file of this id or name."""
    found = _find(client, called, prefix="wfl_", path="/workflows")
    return _require(found, f"no agent code named '{called}'", hint="trellis agent-code list")


def find_job_pipeline(client: ApiClient, called: str) -> str:
    """Return the id of the pipeline of jobs of this id or name; of several, the newest."""
    found = _find(client, called, prefix="jpl_", path="/job-pipelines")
    return _require(found, f"no workflow named '{called}'", hint="trellis job-pipelines list")


def find_sweep(client: ApiClient, called: str) -> str:
    """Return the id of the sweep of this id or name; of several, the newest."""
    found = _find(client, called, prefix="swp_", path="/sweeps")
    return _require(found, f"no sweep named '{called}'", hint="trellis sweeps list")


def find_reward_file(client: ApiClient, called: str, *, must_be_one: bool = False) -> str:
    """Return the id of the reward file of this id or name; of several the newest, as in ``find_job``."""
    found = _find(client, called, prefix="rwf_", path="/rewards/files", must_be_one=must_be_one)
    return _require(found, f"no reward file named '{called}'", hint="trellis rewards files list")


def find_transfer(client: ApiClient, called: str, *, in_states: Container[str]) -> str:
    """Return the id of the transfer of this id, or of a model's only transfer in these states."""
    if called.startswith("trf_"):
        return called
    listed = client.pages("/transfers", model=find_model(client, called))
    found = _one_of([str(each["id"]) for each in listed if each["state"] in in_states], called)
    return _require(found, f"no such transfer of '{called}'", hint="trellis transfers list")


def find_pipeline_run(client: ApiClient, called: str, *, in_states: Container[str]) -> str:
    """Return the id of the pipeline run of this id, or of a pipeline's only run in these states."""
    if called.startswith("dtk_"):
        return called
    pipeline = find_pipeline(client, called)
    listed = (
        str(each["task"]["id"])
        for each in client.pages("/pipelines/runs", pipeline=pipeline)
        if each["task"]["state"] in in_states and (pipeline or each["pipeline"]["name"] == called)
    )
    found = _one_of(list(listed), called)
    return _require(found, f"no such run of '{called}'", hint="trellis pipelines list --runs")


def _find(
    client: ApiClient, called: str, *, prefix: str, path: str, must_be_one: bool = False, **filters: Any
) -> str | None:
    if called.startswith(prefix):
        return called
    exact: list[str] = []
    similar: list[str] = []
    for each in client.pages(path, **filters):
        if each["name"] == called:
            exact.append(str(each["id"]))
            if not must_be_one:
                break
        elif each["name"].casefold() == called.casefold():
            similar.append(str(each["id"]))
    # As the API: a name as it is written, else in other capitals if there is only one such.
    return _one_of(exact or similar, called)


def _one_of(found: list[str], called: str) -> str | None:
    if len(found) > 1:
        # What cannot be undone is not guessed.
        raise Problem(
            f"{len(found)} items are named '{called}'; use the ID",
            hint=", ".join(found),
            exit_code=ExitCode.USAGE,
        )
    return found[0] if found else None


def _require(found: str | None, message: str, *, hint: str) -> str:
    if found is None:
        raise Problem(message, hint=hint, exit_code=ExitCode.REFUSED)
    return found
