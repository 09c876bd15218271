"""`trellis replay`: run a training again from its manifest."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, err, out, print_json, print_table, styled
from trellis_cli.resolve_by_name import find_job

#: Far more than any manifest.
_MAX_BYTES = 16 * 1024**2


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(replay)


def replay(
    manifest: Annotated[
        str, typer.Argument(metavar="MANIFEST", help="Manifest file (JSON), or ID or name of a job.")
    ],
    attempt: Annotated[
        int | None, typer.Option(min=1, help="Attempt of the job; default: the newest with a manifest.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the new job; default: as before.")] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would run and what differs; launch nothing.")
    ] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Refuse if anything differs.")] = False,
    as_json: Json = False,
) -> None:
    """Run a training again from its manifest: same model, data, recipe, parameters and seed.

    Model and data are found by ID or, on another platform, by content hash. Exits with 4 if something is
    missing, or, with --strict, if anything differs (package versions, hardware ...).
    """
    client = connect()
    body = {"manifest": _read(client, manifest, attempt), "name": name}
    plan = client.post("/jobs/replay/preview", body)
    if not as_json:
        _print_plan(plan)
    elif dry_run:
        print_json({"plan": plan, "job": None})
    _refuse(plan, strict=strict)
    if dry_run:
        return
    job = client.post("/jobs/replay", body)
    if as_json:
        print_json({"plan": plan, "job": job})
    else:
        out.print(f"{job['id']}  {styled(job['state'])}  {client.url}/jobs/{job['id']}", highlight=False)


def _read(client: ApiClient, called: str, attempt: int | None) -> dict[str, Any]:
    path = Path(called)
    if not path.is_file():
        if path.suffix == ".json" or "/" in called:
            raise Problem(f"{called} is not a file", exit_code=ExitCode.USAGE)
        found = client.get(f"/jobs/{find_job(client, called)}/manifest", attempt=attempt)
        manifest: dict[str, Any] = found["manifest"]
        return manifest
    if attempt is not None:
        raise Problem("--attempt needs a job, not a file", exit_code=ExitCode.USAGE)
    if path.stat().st_size > _MAX_BYTES:
        raise Problem(f"{called} is too large for a manifest", exit_code=ExitCode.USAGE)
    try:
        read = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise Problem(f"{called} is not JSON: {error}", exit_code=ExitCode.USAGE) from error
    # As the API returns it, with the attempt's number around it.
    inner = read.get("manifest", read) if isinstance(read, dict) else None
    if not isinstance(inner, dict):
        raise Problem(f"{called} is not a manifest", exit_code=ExitCode.USAGE)
    return inner


def _print_plan(plan: dict[str, Any]) -> None:
    """Print what would run, and what differs."""
    request = plan["request"]
    if request is not None:
        data = f"{request['dataset']} version {request['dataset_version'][:12]}"
        told = f"{request['recipe']} of {request['model']} on {data}, seed {request['seed']}"
        err.print(told, markup=False, highlight=False)
    if plan["differences"]:
        rows = [
            (each["what"], *(escape(each[key] or "") for key in ("name", "was", "now")))
            for each in plan["differences"]
        ]
        print_table(("differs", "", "was", "now"), rows)
    else:
        err.print("nothing differs", style="dim")
    for warning in plan["warnings"]:
        err.print(f"warning: {warning['message']}", markup=False, soft_wrap=True)


def _refuse(plan: dict[str, Any], *, strict: bool) -> None:
    problems = plan["problems"]
    if problems:
        told = "; ".join(f"{each['code']}: {each['message']}" for each in problems)
        raise Problem(f"the run can't be repeated: {told}", exit_code=ExitCode.REFUSED)
    if strict and plan["differences"]:
        count = len(plan["differences"])
        raise Problem(f"{count} thing(s) differ from the manifest", exit_code=ExitCode.REFUSED)
