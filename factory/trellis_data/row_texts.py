"""The texts of a batch, whatever its format: plain columns and the turns of conversations alike.

Operators on text see one flat frame with a line per text, work on it in columns, and
hand back new texts in the same order; where a text stands is this module's business.
"""

from collections.abc import Iterator
from typing import Literal, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from trellis_data.layout import Batch, Layout
from trellis_data.sharegpt_roles import CALL_TURN, SPEAKERS

#: Which texts of a row an operator works on. "prompt" is everything before what is to be learned, "answer"
#: what is to be learned; the others are the roles of a conversation's turns.
Where = Literal["all", "prompt", "answer", "user", "assistant", "system"]

#: Roles of columns that hold what is to be learned.
ANSWER_ROLES = frozenset({"answer", "completion", "chosen", "rejected", "text"})
#: What the frame's columns hold; ``text`` is never null there.
FRAME_SCHEMA = {
    "row": pl.UInt32,  # index of the row in the batch
    "field": pl.String,  # name of the column
    "turn": pl.UInt32,  # position in the conversation; 0 in a plain column
    "speaker": pl.String,  # role of the turn; empty in a plain column
    "text": pl.String,
}


class _Place(NamedTuple):
    """A column that holds texts, and the members of its turns, where it holds conversations."""

    column: str
    turn: "_Turn | None" = None


class _Turn(NamedTuple):
    """What the members of a turn are called that hold its speaker and its text."""

    speaker: str
    text: str


#: Messages as OpenAI has them, and ShareGPT's turns.
_MESSAGE, _SHAREGPT = _Turn("role", "content"), _Turn("from", "value")


def texts_of(batch: Batch, where: Where = "all", columns: list[str] | None = None) -> pl.DataFrame:
    """Return the texts of a batch as a frame of ``FRAME_SCHEMA``, ordered by column, row and turn.

    ``columns`` narrows to these columns; without it the columns of the layout's roles count, or, where the
    format is unknown, all that hold text. Raises KeyError for a column that is not there.
    """
    frames = [_frame_of(batch.table, place) for place in _places(batch, columns)]
    frames = [_narrow(frame, batch.layout, where) for frame in frames]
    return pl.concat(frames) if frames else pl.DataFrame(schema=FRAME_SCHEMA)


def with_texts(batch: Batch, frame: pl.DataFrame, texts: pl.Series) -> pa.Table:
    """Return the batch's table with ``texts`` in place of those of ``frame``, line by line (``texts_of``)."""
    table = batch.table
    changed = frame.with_columns(new=texts.cast(pl.String))
    for name in changed["field"].unique(maintain_order=True):
        mine = changed.filter(pl.col("field") == name)
        at = table.schema.get_field_index(name)
        table = table.set_column(at, table.schema.field(at), _replace(table.column(at), mine))
    return table


def row_texts(batch: Batch, where: Where = "all", columns: list[str] | None = None) -> pl.Series:
    """Join the selected texts of each row with line breaks; empty for a row without any."""
    joined = (
        texts_of(batch, where, columns)
        .sort("row", "turn", maintain_order=True)
        .group_by("row", maintain_order=True)
        .agg(pl.col("text").str.join("\n"))
    )
    every = pl.DataFrame({"row": pl.Series(range(len(batch)), dtype=pl.UInt32)})
    return every.join(joined, on="row", how="left", maintain_order="left")["text"].fill_null("")


def any_in_row(batch: Batch, frame: pl.DataFrame, hits: pl.Series) -> np.ndarray:
    """Mark the rows of the batch with a text that hits (``hits``: one boolean per line of ``frame``)."""
    found = np.zeros(len(batch), dtype=bool)
    found[frame["row"].filter(hits).to_numpy()] = True
    return found


def _places(batch: Batch, columns: list[str] | None) -> Iterator[_Place]:
    schema = batch.table.schema
    if columns is not None:
        names = columns
    elif batch.layout.columns:
        names = list(dict.fromkeys(batch.layout.columns.values()))
    else:
        names = schema.names
    for name in names:
        kind = schema.field(name).type
        if is_text(kind):
            yield _Place(name)
        elif turn := _turn_of(kind):
            yield _Place(name, turn)


def is_text(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind))


def is_conversation(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains turns with a text each, as messages or ShareGPT turns."""
    return _turn_of(kind) is not None


def is_messages(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains messages with a role and a text each."""
    return _has(kind, _MESSAGE)


def is_turns(kind: pa.DataType) -> bool:
    """Return whether a column of this type contains ShareGPT turns."""
    return _has(kind, _SHAREGPT)


def _turn_of(kind: pa.DataType) -> _Turn | None:
    return next((turn for turn in (_MESSAGE, _SHAREGPT) if _has(kind, turn)), None)


def _has(kind: pa.DataType, turn: _Turn) -> bool:
    """Return whether the items of lists of this type have the fields of such a turn."""
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind)):
        return False
    if not pa.types.is_struct(kind.value_type):
        return False
    inner = {item.name: item.type for item in kind.value_type}
    return all(is_text(inner.get(name, pa.null())) for name in turn)


def _frame_of(table: pa.Table, place: _Place) -> pl.DataFrame:
    # Chunk by chunk: together they may hold more than one array of strings can.
    frames, start = [pl.DataFrame(schema=FRAME_SCHEMA)], 0
    for chunk in table.column(place.column).chunks:
        frames.append(_frame_of_chunk(chunk, place).with_columns(pl.col("row") + start))
        start += len(chunk)
    return pl.concat(frames)


def _frame_of_chunk(column: pa.Array, place: _Place) -> pl.DataFrame:
    if place.turn is not None:
        messages = pc.list_flatten(column)
        rows = pc.list_parent_indices(column).to_numpy()
        starts = np.searchsorted(rows, rows, side="left")
        lines = {
            "row": rows.astype(np.uint32),
            "turn": (np.arange(len(rows)) - starts).astype(np.uint32),
            "speaker": _speakers(_strings(pc.struct_field(messages, place.turn.speaker)), place.turn),
            "text": _strings(pc.struct_field(messages, place.turn.text)),
        }
    else:
        lines = {
            "row": np.arange(len(column), dtype=np.uint32),
            "turn": np.zeros(len(column), dtype=np.uint32),
            "speaker": pl.repeat("", len(column), eager=True),
            "text": _strings(column),
        }
    frame = pl.DataFrame(lines).with_columns(field=pl.lit(place.column))
    frame = frame.filter(pl.col("text").is_not_null()).select(list(FRAME_SCHEMA))
    if place.turn == _SHAREGPT:
        # Calls of tools are no texts in messages either.
        frame = frame.filter(pl.col("speaker").ne_missing(CALL_TURN))
    return frame


def _speakers(names: pl.Series, turn: _Turn) -> pl.Series:
    """Return the speakers with the role names of messages, however turns are stored."""
    return names.replace(SPEAKERS) if turn == _SHAREGPT else names


def _strings(values: pa.Array | pa.ChunkedArray) -> pl.Series:
    series = pl.from_arrow(values)
    if not isinstance(series, pl.Series):
        raise TypeError("a column of strings is no series")
    return series.cast(pl.String)


def _narrow(frame: pl.DataFrame, layout: Layout, where: Where) -> pl.DataFrame:
    """Keep only the lines that ``where`` selects."""
    if where == "all" or frame.is_empty():
        return frame
    roles = {column: role for role, column in layout.columns.items()}
    role = roles.get(frame["field"][0], "")
    is_plain = pl.col("speaker") == ""
    #: Whether a plain column counts, and whether a turn of a conversation does.
    by_part: dict[str, tuple[bool, pl.Expr]] = {
        "prompt": (role not in ANSWER_ROLES, _is_asked(role)),
        "answer": (role in ANSWER_ROLES, ~_is_asked(role)),
        "user": (role in ("prompt", "input"), pl.col("speaker") == "user"),
        "assistant": (role in ANSWER_ROLES - {"text"}, pl.col("speaker") == "assistant"),
        "system": (role == "system", pl.col("speaker").is_in(["system", "developer"])),
    }
    plain, turn = by_part[where]
    return frame.filter(pl.when(is_plain).then(pl.lit(plain)).otherwise(turn))


def _is_asked(role: str) -> pl.Expr:
    """Return whether a turn belongs to the prompt: always in a prompt column, else if it is not an answer."""
    return pl.lit(True) if role == "prompt" else pl.col("speaker") != "assistant"


def _replace(column: pa.ChunkedArray, lines: pl.DataFrame) -> pa.ChunkedArray:
    chunks, start = [], 0
    for chunk in column.chunks:
        mine = lines.filter(pl.col("row").is_between(start, start + len(chunk), closed="left"))
        chunks.append(_replace_in(chunk, mine.with_columns(pl.col("row") - start)) if len(mine) else chunk)
        start += len(chunk)
    return pa.chunked_array(chunks, column.type)


def _replace_in(whole: pa.Array, lines: pl.DataFrame) -> pa.Array:
    if is_text(whole.type):
        return _scatter(whole, lines["row"].to_numpy(), lines["new"])
    messages = pc.list_flatten(whole)
    rows = pc.list_parent_indices(whole).to_numpy()
    first = np.searchsorted(rows, lines["row"].to_numpy(), side="left")
    turn = _turn_of(whole.type) or _MESSAGE
    content = _scatter(pc.struct_field(messages, turn.text), first + lines["turn"].to_numpy(), lines["new"])
    fields = list(whole.type.value_type)
    children = [
        content if field.name == turn.text else pc.struct_field(messages, field.name) for field in fields
    ]
    struct = pa.StructArray.from_arrays(children, fields=fields, mask=messages.is_null())
    lengths = pc.fill_null(pc.list_value_length(whole), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    kind = pa.int64() if pa.types.is_large_list(whole.type) else pa.int32()
    builder = pa.LargeListArray if pa.types.is_large_list(whole.type) else pa.ListArray
    return builder.from_arrays(pa.array(offsets, type=kind), struct, type=whole.type, mask=whole.is_null())


def _scatter(values: pa.Array, at: np.ndarray, new: pl.Series) -> pa.Array:
    """Return ``values`` with ``new`` at the positions ``at``."""
    mask = np.zeros(len(values), dtype=bool)
    mask[at] = True
    ordered = new.gather(np.argsort(at, kind="stable"))
    replacements = ordered.to_arrow().cast(values.type)
    return pc.replace_with_mask(values, pa.array(mask), replacements)
