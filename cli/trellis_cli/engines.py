"""`trellis engines`: what is changed in verl, vLLM and TRL, and whether it still fits what is installed."""

import json
import subprocess
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
    """Engines as they are installed."""


@app.command()
def compat(as_json: Json = False) -> None:
    """Compare every symbol of an engine that is changed here with the one that is installed.

    Fails where one has moved: docs/upgrading.md says what to do.
    """
    rows = read_rows()
    failures = [row for row in rows if row["state"] in _FAILURES]
    if as_json:
        print_json(rows)
    else:
        print_table(
            ("symbol", "kind", "how", "of", "installed", "state"),
            [
                (
                    row["target"],
                    row["kind"],
                    row["way"],
                    row["versions"],
                    row["installed"],
                    show_state(row["state"]),
                )
                for row in rows
            ],
        )
        for row in failures:
            out.print(f"\n[bold]{row['target']}[/bold]: {row['problem']}", highlight=False)
            out.print(
                f"  now: {row['place'] or 'nowhere'}\n  here: {row['does']}\n  without: {row['without']}"
            )
            out.print(f"  tests: {', '.join(row['tests'])}", highlight=False)
        out.print(f"\n{describe(rows)}", highlight=False)
    if failures:
        raise typer.Exit(ExitCode.FAILED)


def show_state(row: dict[str, Any]) -> str:
    """The state of an entry in its colour."""
    state: str = row["state"]
    if state in _FAILURES:
        return f"[red]{_SHOWN.get(state, state)}[/red]"
    return styled(_SHOWN.get(state, state))


def describe(rows: list[dict[str, Any]]) -> str:
    """One sentence."""
    moved = sum(row["state"] in _FAILURES for row in rows)
    absent = sum(row["state"] == "absent" for row in rows)
    said = f"{len(rows)} symbols are changed; {moved} of them have moved"
    return f"{said}, {absent} are of engines that are not installed here." if absent else f"{said}."


def read_rows() -> list[dict[str, Any]]:
    """What `python -m trellis_train.compat --json` finds."""
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
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        raise Problem(f"the engines could not be looked at: {last}") from None
    return rows
