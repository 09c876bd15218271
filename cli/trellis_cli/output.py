"""How commands print: tables and progress for people, JSON for scripts."""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

#: The option of every command that prints results.
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


class Results(Console):
    """Standard output: for people it is wrapped to their terminal, for a pipe every line stays one line."""

    def print(self, *objects: Any, **options: Any) -> None:
        """Print as rich does, but without wrapping lines if the output is not a terminal."""
        if not self.is_terminal:
            options.setdefault("soft_wrap", True)
        super().print(*objects, **options)


#: Results go to stdout, everything about them to stderr: `trellis ... --json | jq` works.
out = Results()
err = Console(stderr=True)

#: Wider than any table.
_NO_WIDTH = 1_000_000

STATE_STYLE = {
    "queued": "cyan",
    "creating": "cyan",
    "launching": "cyan",
    "running": "blue",
    "stopping": "yellow",
    "stopped": "yellow",
    "cancelled": "yellow",
    "canceled": "yellow",
    "succeeded": "green",
    "ready": "green",
    "failed": "red",
    "crashed": "red",
    "ok": "green",
    "external": "green",
    "failing": "red",
    "warning": "yellow",
}


def print_json(value: Any) -> None:
    """Print one JSON document on stdout."""
    json.dump(value, sys.stdout, ensure_ascii=False)
    sys.stdout.write("\n")
    sys.stdout.flush()


def styled(state: str) -> str:
    """Format a state in its color."""
    style = STATE_STYLE.get(state)
    return f"[{style}]{state}[/{style}]" if style else state


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print a plain table; None becomes an empty cell. Ids are never wrapped, and in a pipe nothing is."""
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in columns:
        table.add_column(column, overflow="fold", no_wrap=column == "id")
    for row in rows:
        table.add_row(*("" if cell is None else str(cell) for cell in row))
    if out.is_terminal:
        out.print(table)
    else:
        Console(file=out.file, width=_NO_WIDTH).print(table)


def age(moment: str | None) -> str:
    """Format the time since an ISO time: 12s, 5m, 3h, 2d."""
    if not moment:
        return ""
    seconds = (datetime.now(UTC) - datetime.fromisoformat(moment)).total_seconds()
    return duration(seconds)


def duration(seconds: float | None) -> str:
    """Format a time span in its largest whole unit."""
    if seconds is None:
        return ""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{seconds / size:.0f}{unit}"
    return f"{max(0, seconds):.0f}s"


def size(count: float | None) -> str:
    """Format bytes in binary units."""
    if count is None:
        return ""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 1024:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} TiB"
