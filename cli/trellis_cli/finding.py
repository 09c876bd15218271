"""Finds what a person calls by its name; ids go through as they are."""

from trellis_cli.client import ApiClient
from trellis_cli.errors import ExitCode, Problem


def find_dataset(client: ApiClient, called: str) -> str:
    """Id of the dataset of this id or name."""
    if called.startswith("ds_"):
        return called
    for each in client.pages("/datasets", text=called):
        if each["name"] == called:
            return str(each["id"])
    raise Problem(f"there is no dataset '{called}'", hint="trellis datasets list", exit_code=ExitCode.REFUSED)


def find_pipeline(client: ApiClient, called: str) -> str | None:
    """Id of the saved pipeline of this id or name, if there is one."""
    if called.startswith("pip_"):
        return called
    return next((str(each["id"]) for each in client.pages("/pipelines") if each["name"] == called), None)


def find_model(client: ApiClient, called: str) -> str:
    """Id of the model of this id or name; of several of the name, the newest."""
    if called.startswith("mdl_"):
        return called
    for each in client.pages("/models"):
        if each["name"] == called:
            return str(each["id"])
    raise Problem(f"there is no model '{called}'", hint="trellis models list", exit_code=ExitCode.REFUSED)
