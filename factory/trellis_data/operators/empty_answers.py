"""Rows whose answer says nothing."""

import re
from typing import Literal

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from trellis_contracts.recipe import Text

from trellis_data.layout import Batch, Layout
from trellis_data.operator import Context, OperatorProblem, TextParams, parameter
from trellis_data.operators.phrases import built_in_phrases
from trellis_data.operators.text_operator import TextOperator
from trellis_data.outcome import Outcome, dropping
from trellis_data.row_texts import ANSWER_ROLES, Where, any_in_row, is_conversation, is_text, texts_of
from trellis_data.sharegpt_roles import CALL_TURN

Kind = Literal["empty", "placeholder", "punctuation", "disclaimer", "repeats_prompt"]
#: Shorter repetitions may be meant: a greeting answered by the same one.
_LEAST_REPEATED = 12


class EmptyAnswersParams(TextParams):
    """Which answers say nothing."""

    where: Where = parameter(
        "answer",
        title=Text(en="Texts", zh="文本范围"),
        help=Text(en="Which texts to process.", zh="对一行中的哪些文本生效。"),
    )
    kinds: list[Kind] = parameter(
        ["empty", "placeholder", "punctuation", "disclaimer", "repeats_prompt"],
        title=Text(en="Kinds", zh="类别"),
        help=Text(
            en="Empty; a placeholder such as N/A or TODO; only punctuation; a disclaimer ('As "
            "an AI language model …'); a repetition of the prompt.",
            zh="空；N/A、TODO 等占位符；仅有标点；以“作为一个人工智能语言模型…”之类声明代替回答；"
            "重复提示内容。",
        ),
    )
    placeholders: list[str] = parameter(
        [],
        title=Text(en="Additional placeholders", zh="补充占位符"),
        help=Text(
            en="Answers equal to one of these count as placeholders (case-insensitive).",
            zh="若整个回答即为这些文字则视为占位符；不区分大小写。",
        ),
    )
    disclaimers: list[str] = parameter(
        [],
        title=Text(en="Additional disclaimers", zh="补充声明语"),
        help=Text(
            en="Answers starting with one of these count as disclaimers.",
            zh="若回答以这些文字开头则视为声明语。",
        ),
    )


class EmptyAnswers(TextOperator):
    """Drops rows one of whose answers says nothing; a turn that calls a tool may be empty."""

    id = "empty_answers"
    group = "clean"
    title = Text(en="Empty answers", zh="空回答")
    help = Text(
        en="Drops rows whose answer is empty, a placeholder, a disclaimer or a repetition of the prompt.",
        zh="删除回答为空、占位符、声明语或重复提示的行。",
    )
    Params = EmptyAnswersParams
    params: EmptyAnswersParams

    def __init__(self, params: EmptyAnswersParams, context: Context) -> None:
        super().__init__(params, context)
        placeholders = [*built_in_phrases("placeholders"), *params.placeholders]
        self._placeholders = pl.Series([_bare_phrase(each) for each in placeholders]).unique()
        disclaimers = [*built_in_phrases("disclaimers"), *params.disclaimers]
        self._disclaimer = f"^(?:{'|'.join(re.escape(each.lower()) for each in disclaimers)})"

    def check(self, schema: pa.Schema, layout: Layout) -> None:
        """Check that there are answers: without them every row would count as empty."""
        super().check(schema, layout)
        if self.params.where != "answer":
            return
        roles = {column: role for role, column in layout.columns.items()}
        for name in self.params.columns or list(roles) or schema.names:
            kind, role = schema.field(name).type, roles.get(name, "")
            if (is_text(kind) and role in ANSWER_ROLES) or (is_conversation(kind) and role != "prompt"):
                return
        raise OperatorProblem(
            "no_answer",
            f"Rows of the format '{layout.format}' hold no answer; say which column is one, or look at "
            "all texts.",
        )

    def apply(self, batch: Batch) -> Outcome:
        """Look for the first kind that applies."""
        frame = self.texts(batch)
        calls = _turns_that_call(batch)
        if len(calls):
            frame = frame.join(calls, on=["row", "field", "turn"], how="anti", maintain_order="left")
        plain = frame["text"].str.strip_chars().str.to_lowercase()
        drop: dict[str, np.ndarray] = {}
        for kind in self.params.kinds:
            if kind == "empty":
                drop["empty_answer"] = any_in_row(batch, frame, plain == "") | self._without_answer(
                    batch, calls
                )
            elif kind == "repeats_prompt":
                drop[kind] = self._repeats(batch, frame)
            else:
                drop[kind] = any_in_row(batch, frame, self._hits(kind, plain))
        return dropping(batch.table, drop)

    def _hits(self, kind: Kind, plain: pl.Series) -> pl.Series:
        if kind == "placeholder":
            return plain.str.strip_chars("[]<>(){}【】（）《》*_-. 。\"'").is_in(self._placeholders.implode())
        if kind == "punctuation":
            return (plain != "") & ~plain.str.contains(r"[\p{L}\p{N}\p{S}]")
        return plain.str.replace_all("’", "'", literal=True).str.contains(self._disclaimer)

    def _without_answer(self, batch: Batch, calls: pl.DataFrame) -> np.ndarray:
        """Mark the rows without any text where answers should be (null, or no such turn)."""
        seen = np.zeros(len(batch), dtype=bool)
        seen[self.texts(batch)["row"].to_numpy()] = True
        seen[calls["row"].to_numpy()] = True
        return ~seen

    def _repeats(self, batch: Batch, frame: pl.DataFrame) -> np.ndarray:
        prompts = texts_of(batch, "prompt")
        key = pl.col("text").str.to_lowercase().str.replace_all(r"\s+", " ").str.strip_chars()
        long = pl.col("key").str.len_chars() >= _LEAST_REPEATED
        asked = prompts.select("row", key=key).filter(long).unique()
        given = frame.select("row", key=key).filter(long)
        again = given.join(asked, on=["row", "key"], how="semi")
        hits = np.zeros(len(batch), dtype=bool)
        hits[again["row"].to_numpy()] = True
        return hits


def _bare_phrase(phrase: str) -> str:
    return phrase.strip().lower().strip("[]<>(){}【】（）《》*_-. 。\"'")


def _calls(turns: pa.StructArray) -> np.ndarray:
    """Mark the turns that call a tool."""
    names = {field.name for field in turns.type}
    if "role" not in names:
        named = pc.equal(pc.struct_field(turns, "from"), CALL_TURN)
        return np.asarray(pc.fill_null(named, False).to_numpy(zero_copy_only=False))
    if "tool_calls" not in names:
        return np.zeros(len(turns), dtype=bool)
    calls = pc.struct_field(turns, "tool_calls")
    size = pc.utf8_length(calls) if is_text(calls.type) else pc.list_value_length(calls)
    # "[]" and "{}" written as text call nothing.
    least = 2 if is_text(calls.type) else 0
    return np.asarray(pc.fill_null(size, 0).to_numpy(zero_copy_only=False) > least)


def _turns_that_call(batch: Batch) -> pl.DataFrame:
    """List the turns (row, field, turn) that call a tool: they need no text."""
    found = []
    for field in batch.table.schema:
        if not is_conversation(field.type):
            continue
        column = batch.table.column(field.name).combine_chunks()
        rows = pc.list_parent_indices(column).to_numpy()
        hits = np.flatnonzero(_calls(pc.list_flatten(column)))
        starts = np.searchsorted(rows, rows, side="left")
        found.append(
            pl.DataFrame(
                {
                    "row": rows[hits].astype(np.uint32),
                    "field": pl.repeat(field.name, len(hits), eager=True),
                    "turn": (hits - starts[hits]).astype(np.uint32),
                }
            )
        )
    empty = pl.DataFrame(schema={"row": pl.UInt32, "field": pl.String, "turn": pl.UInt32})
    return pl.concat([empty, *found])
