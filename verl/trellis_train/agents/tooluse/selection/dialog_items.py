"""Formatted dialogs as items that can be chosen from."""

from collections.abc import Mapping, Sequence
from typing import Any

from trellis_train.agents.tooluse.selection.coreset import CoresetItem, Strategy, select
from trellis_train.agents.tooluse.selection.metrics import DialogMetrics, measure


def text_of(row: Mapping[str, Any]) -> str:
    """Return a dialog's text without the system message, whose tools would outweigh the rest."""
    return "\n".join(str(turn["content"]) for turn in row["messages"] if turn["role"] != "system")


def measure_row(row: Mapping[str, Any]) -> DialogMetrics:
    """Compute the metrics of a formatted dialog."""
    return measure(text_of(row), row.get("metadata"))


def item_of(row: Mapping[str, Any]) -> CoresetItem:
    """Convert a formatted dialog to a coreset item."""
    text = text_of(row)
    return CoresetItem(id=str(row["id"]), text=text, loss=measure(text, row.get("metadata")).loss)


def select_rows(
    rows: Sequence[Mapping[str, Any]], size: int, strategy: Strategy, *, seed: int
) -> list[Mapping[str, Any]]:
    """Select the coreset of these rows, in the order chosen."""
    return [rows[place] for place in select([item_of(row) for row in rows], size, strategy, seed=seed)]
