"""`trellis reports`: evaluations written down as Markdown, HTML and PDF."""

import os
import time
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from rich.markup import escape

from trellis_cli.client import ApiClient, connect
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, age, err, out, print_json, print_table, size, styled
from trellis_cli.resolve_by_name import find_evaluation, find_report
from trellis_cli.waiting import read_patiently

app = typer.Typer(no_args_is_help=True)
_PAUSE_S = 0.5
_ON_ITS_WAY = ("pending", "writing")


class Format(StrEnum):
    """Kinds of files."""

    MD = "md"
    HTML = "html"
    PDF = "pdf"


@app.command()
def create(
    evaluation: Annotated[list[str], typer.Argument(help="IDs or names of finished evaluations.")],
    name: Annotated[str, typer.Option(help="Report title.")],
    language: Annotated[Literal["en", "zh"], typer.Option()] = "en",
    formats: Annotated[
        list[Format] | None, typer.Option("--format", help="Format; default: all three.")
    ] = None,
    samples: Annotated[int, typer.Option(min=0, max=50, help="Number of examples per benchmark.")] = 5,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Download folder.")] = None,
    wait: Annotated[bool, typer.Option(help="Wait until it is ready.")] = True,
    as_json: Json = False,
) -> None:
    """Create a report; with -o, download its files."""
    if output is not None and not wait:
        raise Problem("--output can't be combined with --no-wait", exit_code=ExitCode.USAGE)
    client = connect()
    chosen = [find_evaluation(client, each) for each in evaluation]
    body: dict[str, Any] = {
        "name": name, "evaluations": chosen, "language": language, "samples": samples,
    }  # fmt: skip
    if formats:
        body["formats"] = formats
    report = client.post("/reports", body)
    if wait:
        report = _wait(client, report["id"])
    if output is not None:
        output.mkdir(parents=True, exist_ok=True)
        for each in report["files"]:
            _download(client, report["id"], each["format"], output / f"{report['id']}.{each['format']}")
    if as_json:
        print_json(report)
    else:
        _print([report])


@app.command("list")
def list_reports(
    evaluation: Annotated[str | None, typer.Option(help="Only reports that include this evaluation.")] = None,
    as_json: Json = False,
) -> None:
    """List reports, newest first."""
    client = connect()
    chosen = find_evaluation(client, evaluation) if evaluation else None
    found = list(client.pages("/reports", evaluation=chosen))
    if as_json:
        print_json(found)
    else:
        _print(found)


@app.command()
def download(
    report: Annotated[str, typer.Argument(help="ID or name; the latest if several share the name.")],
    kind: Annotated[Format, typer.Option("--format")] = Format.PDF,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help=("Output file; default: REPORT.FORMAT."))
    ] = None,
) -> None:
    """Download one file of a report."""
    client = connect()
    report = find_report(client, report)
    path = output or Path(f"{report}.{kind}")
    _download(client, report, kind, path)
    out.print(str(path), highlight=False, soft_wrap=True)


@app.command()
def delete(report: Annotated[str, typer.Argument(help="ID or unique name.")]) -> None:
    """Delete a report; its evaluations are kept."""
    client = connect()
    client.delete(f"/reports/{find_report(client, report, must_be_one=True)}")


def _wait(client: ApiClient, report_id: str) -> dict[str, Any]:
    with err.status("generating the report"):
        while True:
            found = read_patiently(client, f"/reports/{report_id}")
            if found["state"] not in _ON_ITS_WAY:
                break
            time.sleep(_PAUSE_S)
    if found["state"] != "ready":
        raise Problem(f"the report could not be generated: {found['state_reason']}")
    if found["state_reason"]:
        err.print(f"[yellow]{escape(found['state_reason'])}[/yellow]", soft_wrap=True)
    return found


def _download(client: ApiClient, report_id: str, kind: str, path: Path) -> None:
    """Download to a temporary file and rename it, so that a file that exists is complete."""
    content = client.send("GET", f"/reports/{report_id}/file", params={"format": kind}).content
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        beside.write_bytes(content)
        beside.replace(path)
    except OSError as error:
        beside.unlink(missing_ok=True)
        raise Problem(f"{path} cannot be written: {error.strerror}") from error


def _print(found: list[dict[str, Any]]) -> None:
    rows = [
        (
            each["id"],
            escape(each["name"]),
            styled(each["state"]),
            each["language"],
            ", ".join(f"{file['format']} {size(file['size_bytes'])}" for file in each["files"]),
            len(each["evaluations"]),
            age(each["created_at"]),
        )
        for each in found
    ]
    print_table(("id", "name", "state", "language", "files", "evaluations", "age"), rows)
