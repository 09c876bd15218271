"""`trellis engines`: what is changed in verl, vLLM and TRL, and whether it still fits what is installed."""

import json
import subprocess
from collections import Counter
from typing import Any

import typer

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, out, print_json, print_table, styled
from trellis_cli.services.platform import python_command

app = typer.Typer(no_args_is_help=True)

#: It reads sources and imports no engine: seconds at most.
LIMIT_S = 120.0
_FAILURES = ("moved", "gone", "other_version")
_SHOWN = {"absent": "not installed", "other_version": "other version"}


@app.callback()
def engines() -> None:
    """Check the installed engines against the patches of Trellis."""


@app.command()
def compat(as_json: Json = False) -> None:
    """Compare every patched engine symbol with the installed version.

    Fails if a symbol has changed; see docs/upgrading.md.
    """
    rows = read_rows()
    failures = [row for row in rows if row["state"] in _FAILURES]
    if as_json:
        print_json(rows)
    else:
        columns = ("target", "kind", "way", "versions", "installed")
        cells = [(*(row[name] for name in columns), show_state(row["state"])) for row in rows]
        print_table((*columns, "state"), cells)
        for row in failures:
            show_failure(row)
        out.print(f"\n{describe(rows)}", highlight=False)
    if failures:
        raise typer.Exit(ExitCode.FAILED)


def show_failure(row: dict[str, Any]) -> None:
    """Print all that helps to decide about an entry that moved."""
    lines = (
        f"\n{row['target']}: {row['problem']}",
        f"  now: {row['place'] or 'nowhere'}",
        f"  here: {row['does']}",
        f"  without: {row['without']}",
        f"  upstream: {row['upstream']}",
        f"  tests: {', '.join(row['tests'])}",
    )
    out.print("\n".join(lines), highlight=False, markup=False)


def show_state(state: str) -> str:
    """Format the state of an entry in its color."""
    if state in _FAILURES:
        return f"[red]{_SHOWN.get(state, state)}[/red]"
    return styled(_SHOWN.get(state, state))


def describe(rows: list[dict[str, Any]]) -> str:
    """Return one sentence: symbols by how they are used, and how many changed."""
    moved = sum(row["state"] in _FAILURES for row in rows)
    absent = sum(row["state"] == "absent" for row in rows)
    layer = sum(is_in_cpu_layer(row) for row in rows)
    ways = Counter(row["way"] for row in rows if not is_in_cpu_layer(row))
    replaced = ways["assigned"] + ways["on_object"]
    said = (
        f"{len(rows)} symbols: {replaced} replaced, {ways['overridden']} overridden in subclasses, "
        f"{ways['called']} called, {layer} in the optional CPU layer; {moved} changed upstream"
    )
    return f"{said}, {absent} are of engines that are not installed here." if absent else f"{said}."


def is_in_cpu_layer(row: dict[str, Any]) -> bool:
    """Tell whether a symbol belongs to the layer that `TRELLIS_CPU_ACCELERATION=0` disables."""
    return str(row["group"]).startswith("cpu-")


def read_rows() -> list[dict[str, Any]]:
    """Return what `python -m trellis_train.compat --json` reports."""
    done = subprocess.run(  # noqa: S603 - this interpreter and our module
        python_command("-m", "trellis_train.compat", "--json"),
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )
    try:
        rows: list[dict[str, Any]] = json.loads(done.stdout)
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise Problem(f"the engines could not be looked at: {last}") from None
    return rows
