"""What `trellis jobs submit | preview` order: a file, options, or a file with options that go before it."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.set_options import read_parameters

File = Annotated[Path | None, typer.Option("-f", "--file", help="Job request in YAML or JSON; - for stdin.")]
Recipe = Annotated[str | None, typer.Option(help="Recipe; see `trellis recipes list`.")]
Model = Annotated[str | None, typer.Option(help="ID or name of the base model.")]
Dataset = Annotated[str | None, typer.Option(help="ID or name of the training dataset.")]
Validation = Annotated[str | None, typer.Option(help="ID or name of the validation dataset.")]
Name = Annotated[str | None, typer.Option(help="Job name; default: the recipe's name.")]
Preset = Annotated[str | None, typer.Option(help="Preset; see `trellis recipes show RECIPE`.")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", help="Recipe parameter as NAME=VALUE; repeatable.")
]
Columns = Annotated[
    list[str] | None,
    typer.Option("--column", help="Column mapping as ROLE=COLUMN, e.g. prompt=question; repeatable."),
]
ReportTo = Annotated[
    str | None,
    typer.Option("--report-to", help="Also send the metrics to W&B: wandb:PROJECT or wandb:TEAM/PROJECT."),
]
ReadAs = Annotated[str | None, typer.Option("--data-format", help="Data format of the rows.")]


@dataclass(frozen=True)
class Choice:
    """What the options of a command say of a job."""

    recipe: str | None = None
    model: str | None = None
    dataset: str | None = None
    validation_dataset: str | None = None
    name: str | None = None
    preset: str | None = None
    settings: Sequence[str] | None = None
    columns: Sequence[str] | None = None
    data_format: str | None = None
    report_to: str | None = None


def make_request(file: Path | None, choice: Choice) -> dict[str, Any]:
    """Build the job request; raise ``Problem`` if a required field is missing."""
    request = {} if file is None else read_request(file)
    plain = ("recipe", "model", "dataset", "validation_dataset", "name", "preset", "data_format")
    request |= {field: value for field in plain if (value := getattr(choice, field)) is not None}
    for field, chosen in (
        ("params", read_parameters(choice.settings or [])),
        ("columns", _read_columns(choice)),
    ):
        if chosen:
            request[field] = {**(request.get(field) or {}), **chosen}
    if choice.report_to is not None:
        request["report_to"] = read_report_to(choice.report_to, request.get("report_to"))
    if file is None:
        missing = [f"--{field}" for field in ("recipe", "model", "dataset") if field not in request]
        if missing:
            raise Problem(
                f"missing {', '.join(missing)}; or use -f FILE with a request",
                hint="trellis jobs submit --recipe sft --model MODEL --dataset DATASET",
                exit_code=ExitCode.USAGE,
            )
        request.setdefault("name", request["recipe"])
    return request


def read_request(file: Path) -> dict[str, Any]:
    """Read a job request from YAML or JSON; `-` reads stdin."""
    try:
        text = sys.stdin.read() if str(file) == "-" else file.read_text()
        request = yaml.safe_load(text)
    except OSError as error:
        raise Problem(f"{file} cannot be read: {error.strerror}", exit_code=ExitCode.USAGE) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise Problem(f"{file} is neither YAML nor JSON: {error}", exit_code=ExitCode.USAGE) from error
    if not isinstance(request, dict):
        raise Problem(f"{file} is not a job request", exit_code=ExitCode.USAGE)
    return request


def read_report_to(text: str, of_file: object = None) -> dict[str, Any]:
    """Parse the option into service and project; keep the name and tags that the file sets."""
    service, _, place = text.partition(":")
    entity, slash, project = place.rpartition("/")
    if service != "wandb" or not project or (slash and not entity):
        raise Problem(
            f"--report-to takes wandb:PROJECT or wandb:TEAM/PROJECT, not '{text}'", exit_code=ExitCode.USAGE
        )
    known = of_file.get("wandb") if isinstance(of_file, dict) else None
    rest = known if isinstance(known, dict) else {}
    return {"wandb": {**rest, "project": project, **({"entity": entity} if entity else {})}}


def _read_columns(choice: Choice) -> dict[str, str]:
    columns = {}
    for pair in choice.columns or ():
        role, equals, column = pair.partition("=")
        if not (role and equals and column):
            raise Problem(f"--column takes ROLE=COLUMN, not '{pair}'", exit_code=ExitCode.USAGE)
        columns[role] = column
    return columns
