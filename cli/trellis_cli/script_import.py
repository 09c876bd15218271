"""`trellis jobs import`: a shell script that starts verl, as a job of the platform."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from trellis_cli.client import connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, err, out, print_json, styled
from trellis_cli.resolve_by_name import find_dataset, find_model

#: Long values of a script, such as lists of files, are shown as far as they fit on a line.
_SHOWN = 60


def register(app: typer.Typer) -> None:
    """Add the command to `trellis jobs`."""
    app.command("import")(import_script)


def import_script(
    script: Annotated[Path, typer.Argument(help="A shell script that launches verl; - for stdin.")],
    model: Annotated[str | None, typer.Option(help="Name or ID of the model to train.")] = None,
    dataset: Annotated[str | None, typer.Option(help="Name or ID of the training dataset.")] = None,
    name: Annotated[str | None, typer.Option(help="Job name; default: the experiment's name.")] = None,
    preset: Annotated[
        str | None,
        typer.Option(
            help=("Preset for settings the script doesn't specify; default: depends on the machine.")
        ),
    ] = None,
    submit: Annotated[bool, typer.Option("--submit", help="Also launch the job.")] = False,
    as_json: Json = False,
) -> None:
    """Convert a verl script to a job request and print it, without running the script."""
    client = connect()
    found = client.post("/jobs/import-script", {"script": _read(script)})
    request: dict[str, Any] = {
        "name": name or found["name"] or script.stem,
        "recipe": found["recipe"],
        **({"preset": preset} if preset else {}),
        "model": find_model(client, model) if model else None,
        "dataset": find_dataset(client, dataset) if dataset else None,
        "params": found["params"],
        "overrides": found["overrides"],
        "resources": {"gpus": found["gpus"]},
    }
    if submit:
        _require_choices(request, found)
    job = client.post("/jobs", request) if submit else None
    if as_json:
        print_json({"request": request, "job": job, **_remarks(found)})
        return
    _print_remarks(found)
    if job is None:
        out.print(yaml.safe_dump(request, sort_keys=False, allow_unicode=True), markup=False, highlight=False)
    else:
        out.print(f"{job['id']}  {styled(job['state'])}  {client.url}/jobs/{job['id']}", highlight=False)


def _read(script: Path) -> str:
    if str(script) == "-":
        return sys.stdin.read()
    try:
        return script.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise Problem(f"{script} cannot be read: {error}", exit_code=ExitCode.USAGE) from None


def _require_choices(request: dict[str, Any], found: dict[str, Any]) -> None:
    for choice in ("model", "dataset"):
        if request[choice] is None:
            said = f" The script names '{found[choice]}'." if found[choice] else ""
            raise Problem(
                f"--submit needs --{choice}: one that is registered on the platform.{said}",
                hint=f"trellis {choice}s list",
                exit_code=ExitCode.USAGE,
            )


def _remarks(found: dict[str, Any]) -> dict[str, Any]:
    keys = ("program", "model", "dataset", "validation_dataset", "left_out", "problems")
    return {"script": {key: found[key] for key in keys}}


def _print_remarks(found: dict[str, Any]) -> None:
    """Tell on standard error what the job does not have; the job itself goes to standard output."""
    for choice in ("model", "dataset", "validation_dataset"):
        if found[choice]:
            err.print(f"{choice}: the script names {found[choice]}", markup=False, soft_wrap=True)
    for left in found["left_out"]:
        value = left["value"] if len(left["value"]) <= _SHOWN else f"{left['value'][:_SHOWN]}…"
        setting = f"{left['setting']}={value}" if value else left["setting"]
        err.print(f"left out: {setting}: {left['reason']}", markup=False, soft_wrap=True)
    for problem in found["problems"]:
        err.print(f"problem: {problem['field']}: {problem['message']}", markup=False, soft_wrap=True)
