"""The memory estimate of a preview, as a table."""

from typing import Any

from rich.table import Table

from trellis_cli.output import err, size


def print_memory(estimate: dict[str, Any] | None) -> None:
    """Print every phase with its parts on stderr; nothing if there is no estimate."""
    if estimate is None:
        return
    table = Table(box=None, pad_edge=False, header_style="bold")
    for column in ("phase", "part", "size", "how"):
        table.add_column(column, overflow="fold", justify="right" if column == "size" else "left")
    for phase in estimate["phases"]:
        mark = " (peak)" if phase["name"] == estimate["peak_phase"] else ""
        table.add_row(f"{phase['title']['en']}{mark}", "", size(phase["total_bytes"]), "", style="bold")
        for part in phase["parts"]:
            table.add_row("", part["title"]["en"], size(part["bytes"]), part["how"]["en"])
    err.print(table)
    _print_sum(estimate)
    for text in estimate["assumptions"]:
        err.print(f"  {text['en']}", style="dim", markup=False, highlight=False)
    _print_warnings(estimate)


def print_memory_warnings(estimate: dict[str, Any] | None) -> None:
    """Print the memory needed and why it may not fit, on stderr; nothing if it fits or is unknown."""
    if estimate is not None and estimate["warnings"]:
        _print_sum(estimate)
        _print_warnings(estimate)


def _print_sum(estimate: dict[str, Any]) -> None:
    available = estimate["available_bytes"]
    known = f" of {size(available)}" if available else ""
    err.print(f"memory: about {size(estimate['per_gpu_bytes'])}{known} for each GPU or slot", highlight=False)


def _print_warnings(estimate: dict[str, Any]) -> None:
    for text in estimate["warnings"]:
        err.print(f"warning: {text['en']}", markup=False, highlight=False)
