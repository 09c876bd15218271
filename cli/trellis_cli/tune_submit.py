"""`trellis tune submit`: a workflow and its configuration as a job of a platform.

The configuration is the one of `trellis tune run`. Rows and code of this machine are uploaded, each once:
what the platform has already is used again. The model lies on the platform.
"""

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any

import typer
from trellis_recipes.workflows.package import BadPackage, read_package
from trellis_recipes.workflows.source import NoWorkflow, find_function

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.event_files import FOLDER
from trellis_cli.file_bar import FileBar
from trellis_cli.job_preview import preview_request
from trellis_cli.job_requests import Preset, ReportTo, read_report_to
from trellis_cli.jobs import Wait, follow, print_job
from trellis_cli.output import Json, err
from trellis_cli.resolve_by_name import (
    find_dataset,
    find_environment,
    find_model,
    find_workflow,
    look_for_model,
)
from trellis_cli.set_options import read_parameters
from trellis_cli.task_bar import TaskBar
from trellis_cli.tune_module import ask, complaint, tell
from trellis_cli.uploading import Note, send_file
from trellis_cli.waiting import wait_for_dataset
from trellis_cli.workflows import send_workflow

_PICKLE = ".pkl"
#: What a configuration without tasks to evaluate on switches off.
_OF_VALIDATION = ("validation_rows", "validate_before", "validate_every")


def submit(
    config: Annotated[Path, typer.Argument(help="Configuration YAML; see docs/sdk.md.")],
    workflow: Annotated[
        str,
        typer.Argument(
            help="file.py, file.py:function or a package folder; or agent code of the platform, by name or ID"
        ),
    ],
    model: Annotated[
        str | None, typer.Option(help="ID or name of the model; default: named like model_path.")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="ID or name of the dataset; default: upload the taskset's file.")
    ] = None,
    validation_dataset: Annotated[
        str | None, typer.Option(help="ID or name; default: upload the file of eval_tasksets, if any.")
    ] = None,
    environment: Annotated[
        str | None, typer.Option(help="Environment (ID or name) whose tools the workflow uses.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Job name; default: that of the configuration.")] = None,
    preset: Preset = None,
    set_values: Annotated[
        list[str] | None, typer.Option("--set", help="Parameter of the tune recipe as NAME=VALUE.")
    ] = None,
    report_to: ReportTo = None,
    validate: Annotated[
        bool,
        typer.Option(help="First run sessions in this machine's sandbox; needs the engine installed here."),
    ] = True,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", help="Upload code and rows and show what would run, without launching anything."
        ),
    ] = False,
    wait: Wait = False,
    as_json: Json = False,
) -> None:
    """Train a workflow on the platform: validate it here, upload it with its rows, and launch a job.

    trellis tune submit tune.yaml workflow.py --model starter --wait

    With --dry-run, nothing is launched; exits with 4 if the job would be refused.
    """
    changes = read_parameters(set_values or [])
    client = connect()
    path, function = _locate(workflow)
    kind = client.get("/monitoring/dashboard")["platform"]
    plan = _map(config, workflow if validate and path is not None else None, kind)
    params = plan["params"]
    has_evaluation = plan["validation"] is not None or bool(plan["evaluations"])
    if validation_dataset is not None and not has_evaluation:
        params = {each: value for each, value in params.items() if each not in _OF_VALIDATION}
    params = {**params, **changes}
    if environment is not None:
        params["environment"] = find_environment(client, environment)
    _refuse_unnamed(plan, params)
    if validation_dataset is None:
        _refuse_apart(plan)
    request: dict[str, Any] = {
        "name": name or str(plan["name"]),
        "recipe": plan["recipe"],
        "preset": preset,
        "model": _find_model(client, model, plan["model"]),
        "overrides": plan["overrides"],
        "seed": plan["seed"],
        "resources": {"gpus": plan["gpus"]},
    }
    if report_to is not None:
        request["report_to"] = read_report_to(report_to)
    if dataset is not None:
        dataset = find_dataset(client, dataset)
    if validation_dataset is not None:
        validation_dataset = find_dataset(client, validation_dataset)
    code = find_workflow(client, workflow) if path is None else _send_code(client, path, function)
    request |= _name_rows(client, plan, dataset, validation_dataset)
    request["params"] = {**params, "workflow": code}
    if dry_run:
        preview_request(client, request, as_json=as_json)
        return
    job = client.post("/jobs", request)
    print_job(client, job, as_json=as_json)
    if plan["has_event_files"]:
        folder = Path(plan["folder"]) / FOLDER
        err.print(
            f"event files: trellis jobs tensorboard {job['id']} -o {folder} --follow",
            markup=False,
            highlight=False,
            soft_wrap=True,
        )
    follow(client, job, wait=wait)


def _locate(workflow: str) -> tuple[Path | None, str | None]:
    """Split a workflow into path and function; no path if it is on the platform."""
    text, _, function = workflow.partition(":")
    path = Path(text)
    if path.suffix == _PICKLE:
        raise Problem(
            f"{path} is a pickle, which only runs here; submit the file or the package itself",
            exit_code=ExitCode.USAGE,
        )
    if path.exists():
        return path, function or None
    if path.suffix == ".py" or "/" in text:
        raise Problem(f"no such file or folder: {path}", exit_code=ExitCode.USAGE)
    return None, None


def _map(config: Path, workflow: str | None, platform: str) -> dict[str, Any]:
    """Convert a configuration to a job request; raise ``Problem`` with everything that is wrong."""
    given = [str(config), *([] if workflow is None else [workflow])]
    done = ask("map", *given, "--platform", platform)
    if done.returncode:
        hint = None if workflow is None else "or --no-validate, and the platform validates it"
        raise Problem(complaint(done), hint=hint, exit_code=ExitCode.USAGE)
    if done.stderr.strip():
        err.print(done.stderr.strip(), markup=False, highlight=False, style="dim")
    plan: dict[str, Any] = json.loads(done.stdout)
    if faults := plan.pop("faults"):
        raise Problem("; ".join(map(tell, faults)), exit_code=ExitCode.USAGE)
    # Job and rollout have one seed, which a sweep may vary.
    plan["params"].pop("seed", None)
    return {**plan, "name": Path(plan["folder"]).name}


def _refuse_unnamed(plan: dict[str, Any], params: dict[str, Any]) -> None:
    """Raise ``Problem`` if the configuration uses local resources that have no name on the platform yet."""
    if plan["environments"] and not params.get("environment"):
        raise Problem(
            f"the configuration uses environments of this machine: {', '.join(plan['environments'])}",
            hint="create one on the platform (trellis environments create) and name it with --environment",
            exit_code=ExitCode.USAGE,
        )
    if plan["auxiliary_models"] and not params.get("auxiliary_models"):
        names = ", ".join(f"{each}=MODEL" for each in plan["auxiliary_models"])
        raise Problem(
            "the configuration's auxiliary models have addresses; on the platform they are models of its own",
            hint=f'--set "auxiliary_models={names}"',
            exit_code=ExitCode.USAGE,
        )


def _refuse_apart(plan: dict[str, Any]) -> None:
    """Raise ``Problem`` if one of several evaluations is not a local file: a job evaluates on one dataset."""
    away = [rows["path"] for rows in plan["evaluations"].values() if not Path(rows["path"]).is_file()]
    if away:
        raise Problem(
            f"several eval_tasksets are joined only if all are files of this machine: {', '.join(away)}",
            hint="bring their rows to the platform as one dataset (trellis datasets import) and name it with "
            "--validation-dataset",
            exit_code=ExitCode.USAGE,
        )


def _find_model(client: ApiClient, called: str | None, path: str) -> str:
    if called is not None:
        return find_model(client, called)
    for name in dict.fromkeys((path, Path(path).name)):
        if (found := look_for_model(client, name)) is not None:
            return found
    raise Problem(
        f"the platform has no model named like {path}",
        hint="name one with --model; see `trellis models list`, `get` and `register`",
        exit_code=ExitCode.REFUSED,
    )


def _send_code(client: ApiClient, path: Path, function: str | None) -> str:
    """Return the id of the code on the platform; upload it unless the same code is there."""
    try:
        if path.is_dir():
            package = read_package(path, function)
            sha256, named = package.sha256, package.function
        else:
            code = path.read_text(encoding="utf-8")
            sha256, named = hashlib.sha256(code.encode()).hexdigest(), find_function(code, function)
    except (BadPackage, NoWorkflow, UnicodeDecodeError) as error:
        raise Problem(f"{path} has no workflow: {error}", exit_code=ExitCode.USAGE) from error
    known = list(client.pages("/workflows"))
    for each in known:
        if (each["sha256"], each["function"], each["state"]) == (sha256, named, "ready"):
            return str(each["id"])
    name = _free_name(path.resolve().name.partition(".")[0], (each["name"] for each in known))
    return str(send_workflow(client, path, name=name, function=function)["id"])


def _free_name(name: str, taken: Iterable[str]) -> str:
    """Return the name, with the first free number added if it is taken."""
    known, number = set(taken), 1
    while (found := name if number == 1 else f"{name}-{number}") in known:
        number += 1
    return found


def _is_numbered(found: str, name: str) -> bool:
    """Return whether it is the name, or one that ``_free_name`` derives from it."""
    return found == name or found.removeprefix(f"{name}-").isdigit()


def _name_rows(
    client: ApiClient, plan: dict[str, Any], dataset: str | None, validation: str | None
) -> dict[str, Any]:
    """Build the part of the request about rows; files of this machine are uploaded."""
    train, measured = plan["train"], plan["validation"]
    rows: dict[str, Any] = {
        "dataset": dataset or _send_rows(client, train["path"], "--dataset"),
        "columns": train["columns"],
        "data_format": train["format"],
    }
    described = measured
    if validation is not None:
        # Rows that are named have the columns of the file, not those of evaluations that are joined here.
        described = next(iter(plan["evaluations"].values()), measured or train)
    elif measured is not None:
        validation = _send_rows(client, measured["path"], "--validation-dataset")
    if validation is not None:
        rows["validation_dataset"] = validation
        rows["validation_columns"], rows["validation_data_format"] = described["columns"], described["format"]
    return rows


def _send_rows(client: ApiClient, place: str, option: str) -> str:
    """Return the id of a dataset with the rows of a file, whose name tells what the file contained."""
    path = Path(place)
    if not path.is_file():
        raise Problem(
            f"{place} is no file of this machine",
            hint=f"bring the rows to the platform (trellis datasets import) and name them with {option}",
            exit_code=ExitCode.USAGE,
        )
    with path.open("rb") as handle:
        digest = hashlib.file_digest(handle, "sha256").hexdigest()
    name = f"{path.stem[:100]}-{digest[:8]}"
    # Also those that got a number, because an import under the name failed.
    named = [each for each in client.pages("/datasets", text=name) if _is_numbered(each["name"], name)]
    found = next((str(each["id"]) for each in named if each["state"] != "failed"), None)
    if found is None:
        name = _free_name(name, (each["name"] for each in named))
        with FileBar(path) as bar:
            upload = send_file(client, path, tell=bar.show)
        source = {"kind": "upload", "upload": upload}
        found = str(client.post("/datasets/imports", {"name": name, "source": source})["id"])
        Note(client, path).forget()
    with TaskBar() as bar:
        wait_for_dataset(client, found, look=bar.show)
    return found
