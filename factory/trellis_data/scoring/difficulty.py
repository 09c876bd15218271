"""How hard a prompt is for a model, by how often its attempts passed."""

from dataclasses import replace
from typing import Self

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import model_validator
from trellis_contracts.recipe import Text

from trellis_data.findings import Histogram
from trellis_data.layout import Batch, Layout
from trellis_data.operator import OperatorProblem, Params, RowOperator, parameter
from trellis_data.outcome import Outcome, dropping
from trellis_data.scoring.scores import check_number, score_column, score_type, scores_of

_EDGES = [step / 20 for step in range(21)]


class DifficultyParams(Params):
    """Where the attempts are, and which rows go on."""

    attempts: str = parameter(
        "pass_rate",
        min_length=1,
        title=Text(en="Attempts", zh="尝试结果"),
        help=Text(
            en="Column with a pass rate (0 to 1) or a list of rewards.",
            zh="通过率（0 到 1）所在的列，或各次尝试奖励的列表列。",
        ),
    )
    passes_from: float = parameter(
        1.0,
        title=Text(en="Passing reward", zh="通过阈值"),
        help=Text(
            en="Minimum reward for an attempt to count as passed.",
            zh="列表中的奖励达到该值即视为通过。",
        ),
    )
    column: str = parameter(
        "difficulty",
        min_length=1,
        title=Text(en="Column", zh="列"),
        help=Text(
            en="Output column for the difficulty (1 − pass rate).",
            zh="写入难度（未通过的比例）的列。",
        ),
    )
    easiest: float = parameter(
        0.0,
        ge=0,
        le=1,
        title=Text(en="Min difficulty", zh="最低难度"),
        help=Text(
            en="Drops easier rows; rows that always pass give no learning signal.",
            zh="更容易的行将被删除：总能通过的题目没有训练价值。",
        ),
    )
    hardest: float = parameter(
        1.0,
        ge=0,
        le=1,
        title=Text(en="Max difficulty", zh="最高难度"),
        help=Text(
            en="Drops harder rows; rows that never pass give no learning signal either.",
            zh="更难的行将被删除：从不通过的题目同样没有训练价值。",
        ),
    )

    @model_validator(mode="after")
    def _check_bounds(self) -> Self:
        if self.easiest > self.hardest:
            raise ValueError(f"the easiest {self.easiest} is above the hardest {self.hardest}")
        return self


class Difficulty(RowOperator):
    """Adds the difficulty; may drop what is too easy or too hard. Rows without attempts go on without one."""

    id = "difficulty"
    group = "score"
    title = Text(en="Difficulty", zh="难度")
    help = Text(
        en="Computes difficulty from pass rates or rewards and drops rows that are too easy or too hard.",
        zh="根据通过率或各次尝试的奖励判断每行难度，并可删除过易或过难的行。",
    )
    Params = DifficultyParams
    params: DifficultyParams

    def check(self, schema: pa.Schema, layout: Layout) -> None:  # noqa: ARG002 - the interface
        """Check that the attempts exist and the column does not."""
        kind = score_type(schema, self.params.attempts)
        if not _is_list(kind):
            check_number(schema, self.params.attempts)
        elif not pa.types.is_primitive(kind.value_type):
            raise OperatorProblem("not_a_number", f"'{self.params.attempts}' holds no rewards ({kind}).")
        if self.params.column in schema.names:
            raise OperatorProblem(
                "column_taken", f"Column '{self.params.column}' already exists; choose another name."
            )

    def schema_after(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema with one more column."""
        return schema.append(pa.field(self.params.column, pa.float32()))

    def apply(self, batch: Batch) -> Outcome:
        """Set the difficulty to one minus the share of attempts that passed."""
        rates = self._pass_rates(batch.table)
        out_of_range = (rates < 0) | (rates > 1)
        difficulty = np.where(out_of_range, np.nan, 1.0 - rates)
        table = batch.table.append_column(
            self.params.column, pa.array(difficulty, pa.float32(), from_pandas=True)
        )
        drop = {
            "pass_rate_out_of_range": out_of_range,
            "too_easy": difficulty < self.params.easiest,
            "too_hard": difficulty > self.params.hardest,
        }
        outcome = dropping(table, drop)
        return replace(
            outcome,
            changed=outcome.keep.copy(),
            findings={"difficulty": Histogram.of(difficulty, _EDGES)},
        )

    def _pass_rates(self, table: pa.Table) -> np.ndarray:
        """Compute the share of attempts that passed; NaN if there are none."""
        if not _is_list(score_type(table.schema, self.params.attempts)):
            return scores_of(table, self.params.attempts)
        column = score_column(table, self.params.attempts).combine_chunks()
        rewards = pc.list_flatten(column).cast(pa.float64())
        rows = pc.list_parent_indices(column).to_numpy()
        passed = pc.greater_equal(rewards, self.params.passes_from).to_numpy(zero_copy_only=False)
        is_told = rewards.is_valid().to_numpy(zero_copy_only=False)
        number = np.bincount(rows[is_told], minlength=len(column)).astype(np.float64)
        good = np.bincount(rows[is_told], weights=passed[is_told].astype(np.float64), minlength=len(column))
        rates = np.full(len(column), np.nan)
        np.divide(good, number, out=rates, where=number > 0)
        return rates


def _is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind))
