"""Rows that are too short or too long, in tokens, characters or turns."""

from dataclasses import replace
from pathlib import Path
from typing import Literal, Self

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import model_validator
from trellis_contracts.recipe import Text

from trellis_data.findings import Histogram
from trellis_data.layout import Batch, Layout
from trellis_data.operator import Context, OperatorProblem, TextParams, parameter
from trellis_data.operators.text_operator import TextOperator, over_rows
from trellis_data.outcome import Outcome, dropping
from trellis_data.row_texts import any_in_row
from trellis_data.tokens import TOKENIZER_FILE, count_tokens, load_tokenizer

#: 0, then a bin for each doubling.
LENGTH_EDGES = [0.0, *(float(2**power) for power in range(24))]


class LengthParams(TextParams):
    """How long rows may be."""

    unit: Literal["tokens", "characters", "turns"] = parameter(
        "tokens",
        title=Text(en="Unit", zh="单位"),
        help=Text(
            en="Tokens (without chat template tokens), characters, or conversation turns.",
            zh="所选模型自己的 Token（不含对话模板的标记）、字符，或对话的轮数。",
        ),
    )
    minimum: int | None = parameter(
        None,
        ge=0,
        title=Text(en="Min", zh="最少"),
        help=Text(en="Minimum; shorter rows are dropped.", zh="更短的将被删除。"),
    )
    maximum: int | None = parameter(
        None,
        ge=0,
        title=Text(en="Max", zh="最多"),
        help=Text(en="Maximum; longer rows are dropped.", zh="更长的将被删除。"),
    )
    scope: Literal["row", "text"] = parameter(
        "row",
        title=Text(en="Applies to", zh="度量对象"),
        help=Text(
            en="The row as a whole, or each text: then a single text out of range drops the row.",
            zh="整行文本合计，或逐条文本：任何一条过短或过长都会删除该行。",
        ),
    )

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.minimum is None and self.maximum is None:
            raise ValueError("give a minimum, a maximum or both")
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ValueError(f"the minimum {self.minimum} is greater than the maximum {self.maximum}")
        if self.unit == "turns" and self.scope == "text":
            raise ValueError("turns are counted over a row: set scope to 'row'")
        return self


class Length(TextOperator):
    """Drops rows by their length."""

    id = "length"
    group = "clean"
    title = Text(en="Length", zh="长度")
    help = Text(
        en="Drops rows that are too short or too long, in tokens, characters or turns.",
        zh="按模型自己的 Token 数、字符数或轮数删除过短或过长的行。",
    )
    Params = LengthParams
    params: LengthParams

    def __init__(self, params: LengthParams, context: Context) -> None:
        super().__init__(params, context)
        self._tokenizer = load_tokenizer(self._tokenizer_folder()) if params.unit == "tokens" else None

    def check(self, schema: pa.Schema, layout: Layout) -> None:
        """Check that there is a tokenizer if lengths are counted in tokens."""
        super().check(schema, layout)
        if self.params.unit == "tokens" and not (self._tokenizer_folder() / TOKENIZER_FILE).is_file():
            raise OperatorProblem(
                "tokenizer_unreadable", f"The model's folder has no {TOKENIZER_FILE}; name another model."
            )

    def apply(self, batch: Batch) -> Outcome:
        """Drop what is out of bounds."""
        frame = self.texts(batch)
        lengths = self._lengths(frame)
        if self.params.scope == "row":
            measured = over_rows(batch, frame, pl.Series(lengths))
            short, long = self._out_of_bounds(measured)
        else:
            measured = lengths.astype(np.float64)
            short, long = (any_in_row(batch, frame, pl.Series(hits)) for hits in self._out_of_bounds(lengths))
        outcome = dropping(batch.table, {"too_short": short, "too_long": long})
        return replace(outcome, findings={self.params.unit: Histogram.of(measured, LENGTH_EDGES)})

    def _lengths(self, frame: pl.DataFrame) -> np.ndarray:
        if self._tokenizer is not None:
            return count_tokens(self._tokenizer, frame["text"])
        if self.params.unit == "characters":
            return frame["text"].str.len_chars().to_numpy().astype(np.int64)
        return np.ones(len(frame), dtype=np.int64)

    def _out_of_bounds(self, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        least = -np.inf if self.params.minimum is None else self.params.minimum
        most = np.inf if self.params.maximum is None else self.params.maximum
        return lengths < least, lengths > most

    def _tokenizer_folder(self) -> Path:
        if self.context.tokenizer is None:
            raise OperatorProblem(
                "tokenizer_missing",
                "Lengths in tokens need a tokenizer: set 'tokenizer' of the pipeline to a model, or count "
                "characters.",
            )
        return self.context.tokenizer
