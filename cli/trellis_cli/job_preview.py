"""What a job would run, for `trellis jobs preview` and `trellis jobs submit --dry-run`."""

from typing import Any

import typer
from rich.markup import escape
from rich.table import Table

from trellis_cli.client import ApiClient
from trellis_cli.errors import ExitCode
from trellis_cli.forecast import describe_forecast
from trellis_cli.memory import print_memory, print_memory_warnings
from trellis_cli.output import err, out, print_json


def preview_request(client: ApiClient, request: dict[str, Any], *, as_json: bool) -> None:
    """Print what a request would run; leave with ``REFUSED`` if it has errors. Nothing is launched."""
    composed = client.post("/jobs/preview", request)
    if as_json:
        print_json(composed)
    else:
        out.print(composed["command"], markup=False, highlight=False, soft_wrap=True)
        _print_parameters(composed, chosen=request.get("params") or {})
        print_memory(composed["memory"])
        for line in describe_forecast(composed["forecast"]):
            err.print(line, markup=False, highlight=False)
        _print_data_fit(composed["data"])
        _print_issues("warning", composed["warnings"])
        _print_issues("error", composed["errors"])
    if composed["errors"]:
        raise typer.Exit(ExitCode.REFUSED)


def warn_before_launch(client: ApiClient, request: dict[str, Any]) -> None:
    """Print on stderr what the launch form shows beside its button; what is wrong the launch itself says."""
    composed = client.post("/jobs/preview", request)
    if not composed["errors"]:
        _print_issues("warning", composed["warnings"])
        print_memory_warnings(composed["memory"])


def _print_parameters(composed: dict[str, Any], *, chosen: dict[str, Any]) -> None:
    """Print every parameter with its value on stderr, and which of them were requested or derived."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("parameter", "value", "from"):
        table.add_column(column, overflow="fold")
    derived = set(composed["derived"])
    for name, value in sorted(composed["params"].items()):
        source = "request" if name in chosen else "derived" if name in derived else ""
        table.add_row(name, "" if value is None else escape(str(value)), source)
    err.print(table)


def _print_data_fit(found: dict[str, Any] | None) -> None:
    """Print how the dataset would be read, or what it lacks and how else it could be read."""
    if found is None:
        return
    columns = ", ".join(f"{role}: {column}" for role, column in found["columns"].items())
    err.print(f"data: read as {found['read_as']} ({columns})", markup=False)
    if found["conversion"]:
        err.print(f"  {found['conversion']['how']['en']}", markup=False)
    for missing in found["missing"]:
        err.print(f"  {missing['reason']['en']}", markup=False)
    if not found["fits"]:
        for offer in found["offers"]:
            options = " ".join(f"--column {role}={column}" for role, column in offer["columns"].items())
            err.print(f"  try: --data-format {offer['format']} {options}", markup=False, soft_wrap=True)


def _print_issues(kind: str, issues: list[dict[str, Any]]) -> None:
    for issue in issues:
        err.print(
            f"{kind}: {issue['field']}: {issue['message']}", markup=False, highlight=False, soft_wrap=True
        )
