"""What seed rows ask, whatever their format, and what they answer."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from trellis_contracts.recipe import DataFormat
from trellis_contracts.row_formats import PROMPT_COLUMNS

from trellis_data.chat_client import Message
from trellis_data.layout import Layout
from trellis_data.operator import OperatorProblem
from trellis_data.pipeline.units import schema_of
from trellis_data.row_texts import is_text

_STEP_ROWS = 256
#: Roles of columns that may hold what a row asks, and what it answers.
_CONVERSATIONS = ("messages", "chosen")
_ANSWERS = ("answer", "completion", "chosen")


@dataclass(frozen=True)
class Seed:
    """A row, as far as generating goes."""

    position: int
    #: All turns before the last answer.
    prompt: tuple[Message, ...]
    reference: str | None

    @property
    def instruction(self) -> str:
        """The last thing that is asked."""
        return self.prompt[-1].content


def read_seeds(files: Sequence[Path], layout: Layout, reference: str | None = None) -> Iterator[Seed | int]:
    """Read the rows of Parquet files in order; for a row without a prompt, yield only its position.

    ``reference`` is the column of the answers, where the format has none or another one counts.
    """
    columns = _columns(schema_of(files), layout)
    if reference is not None and reference not in schema_of(files).names:
        raise OperatorProblem("column_missing", f"The seed rows have no column '{reference}'.")
    position = 0
    for path in files:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(_STEP_ROWS):
                for row in batch.to_pylist():
                    yield _seed_of(row, columns, reference, position) or position
                    position += 1


def _columns(schema: pa.Schema, layout: Layout) -> dict[str, str]:
    """Return the columns by role; rows with only a prompt are seeds too, though they have no known format."""
    columns = {role: name for role, name in layout.columns.items() if name in schema.names}
    if layout.format == DataFormat.UNKNOWN and not columns:
        texts = [name for name in PROMPT_COLUMNS if name in schema.names and is_text(schema.field(name).type)]
        columns = {"prompt": texts[0]} if texts else {}
    if not columns.keys() & {"prompt", "text", *_CONVERSATIONS}:
        raise OperatorProblem(
            "column_missing",
            f"The seed rows hold no prompt (columns: {', '.join(schema.names)[:500]}). Name it, as in "
            "--format prompt-answer --column prompt=COLUMN --column answer=COLUMN.",
        )
    return columns


def _seed_of(
    row: dict[str, Any], columns: dict[str, str], reference: str | None, position: int
) -> Seed | None:
    values = {role: row.get(name) for role, name in columns.items()}
    turns = _prompt_of(values)
    said = [values[role] for role in _ANSWERS if isinstance(values.get(role), str | int | float)]
    answer: Any = said[0] if said else None
    while turns and turns[-1].role == "assistant":
        answer = turns.pop().content
    rule = values.get("reward_model")
    if isinstance(rule, dict):
        answer = rule.get("ground_truth")
    if reference is not None:
        answer = row[reference]
    if not turns or not turns[-1].content.strip():
        return None
    return Seed(position, tuple(turns), None if answer is None else str(answer))


def _prompt_of(values: dict[str, Any]) -> list[Message]:
    """Return the turns of a row, including the answer if it is a conversation."""
    asked = values.get("prompt") or values.get("text")
    if asked is None:
        asked = next((values[role] for role in _CONVERSATIONS if isinstance(values.get(role), list)), None)
    if isinstance(asked, list):
        turns = [turn for turn in asked if turn is not None]
        return [Message(str(turn.get("role") or "user"), str(turn.get("content") or "")) for turn in turns]
    if not isinstance(asked, str):
        return []
    parts = [part for part in (asked, values.get("input")) if isinstance(part, str) and part.strip()]
    system = values.get("system")
    first = [Message("system", system)] if isinstance(system, str) and system.strip() else []
    return [*first, Message("user", "\n\n".join(parts))]
