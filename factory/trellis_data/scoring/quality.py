"""How good a row is, as a column of parts and their weighted mean."""

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic import model_validator
from trellis_contracts.recipe import Text

from trellis_data.findings import Finding, Histogram, Ranking, Standing
from trellis_data.layout import Batch, Layout
from trellis_data.operator import OperatorProblem, Params, RowOperator, parameter
from trellis_data.outcome import Outcome, kept_all
from trellis_data.scoring.answers import answer_columns, asked
from trellis_data.scoring.parts import (
    diversity_part,
    format_part,
    length_part,
    relevance_part,
    repetition_part,
)

PARTS = ("length", "diversity", "repetition", "relevance", "format")
#: Bins of the report's histograms.
SCORE_EDGES = [step / 20 for step in range(21)]
#: Rows that a report shows as the best and as the worst, and how much of their texts.
_SHOWN, _SHOWN_CHARACTERS = 5, 400


def _weight(default: float, en: str, zh: str) -> float:
    value: float = parameter(
        default,
        ge=0,
        le=100,
        title=Text(en=f"Weight of {en}", zh=f"{zh}权重"),
        help=Text(
            en="Weight in the total score; 0 excludes it. Scores that can't be computed are ignored.",
            zh="在总分中的比重；0 表示不计。无法判断的分项不计入。",
        ),
    )
    return value


class QualityParams(Params):
    """What counts how much."""

    column: str = parameter(
        "quality",
        min_length=1,
        title=Text(en="Column", zh="列"),
        help=Text(en="Output column for the scores.", zh="写入评分的列。"),
    )
    good_length: int = parameter(
        60,
        ge=1,
        le=100_000,
        title=Text(en="Target length", zh="理想长度"),
        help=Text(
            en="Number of words that counts as long enough. Chinese characters count as words.",
            zh="达到该词数的回答即视为长度充足；一个汉字计为一个词。",
        ),
        unit="words",
    )
    weight_length: float = _weight(1.0, "length", "长度")
    weight_diversity: float = _weight(1.0, "diversity", "词汇多样性")
    weight_repetition: float = _weight(1.0, "repetition", "无重复")
    weight_relevance: float = _weight(1.0, "relevance", "相关性")
    weight_format: float = _weight(1.0, "format", "格式")
    judge: str | None = parameter(
        None,
        title=Text(en="Judge column", zh="裁判分数列"),
        help=Text(
            en="Column with scores from 0 to 1, e.g. from a judge or reward model, to include in the total.",
            zh="取值 0 到 1 的数值列（如裁判模型或奖励模型所写），作为一个分项计入。",
        ),
    )
    weight_judge: float = _weight(3.0, "the judge", "裁判")

    @model_validator(mode="after")
    def _check_weights(self) -> "QualityParams":
        if not any(getattr(self, f"weight_{part}") for part in PARTS) and not (
            self.judge and self.weight_judge
        ):
            raise ValueError("give at least one part a weight above 0")
        return self


class Quality(RowOperator):
    """Adds a column of scores to each row; the total is explained by its parts."""

    id = "quality"
    group = "score"
    title = Text(en="Quality", zh="质量评分")
    help = Text(
        en="Scores each answer from 0 to 1 by length, diversity, repetition, relevance to "
        "the prompt and format, plus a total. No model required. For preference pairs, "
        "scores the chosen response.",
        zh="为每行回答打 0 到 1 分：长度、多样性、重复、与提示的相关性、格式及总分；无需模型。"
        "偏好数据只计被选回答。",
    )
    Params = QualityParams
    params: QualityParams

    def check(self, schema: pa.Schema, layout: Layout) -> None:
        """Check that there is an answer, a free column, and the judge's scores."""
        taken = self.params.column
        if taken in schema.names and not pa.types.is_struct(schema.field(taken).type):
            raise OperatorProblem("column_taken", f"The column '{taken}' holds something else; name another.")
        answer_columns(schema, layout)
        judge = self.params.judge
        if judge is not None and (judge not in schema.names or not _is_number(schema.field(judge).type)):
            raise OperatorProblem("column_missing", f"There is no column of numbers '{judge}'.")

    def schema_after(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema with one column added or replaced."""
        field = pa.field(self.params.column, self._type())
        if self.params.column in schema.names:
            return schema.set(schema.get_field_index(self.params.column), field)
        return schema.append(field)

    def apply(self, batch: Batch) -> Outcome:
        """Score in columns."""
        prompts, answers = asked(batch)
        words, unrepeated = repetition_part(answers)
        scores = {
            "length": length_part(words, self.params.good_length),
            "diversity": diversity_part(answers),
            "repetition": unrepeated,
            "relevance": relevance_part(prompts, answers),
            "format": format_part(answers, words),
        }
        for values in scores.values():
            values[words == 0] = 0.0  # nothing is neither diverse nor well formed
        if self.params.judge is not None:
            scores["judge"] = _numbers(batch.table.column(self.params.judge))
        scores["total"] = self._total(scores)
        table = self._with_scores(batch.table, scores)
        changed = np.ones(len(batch), dtype=bool)
        return replace(kept_all(table, changed), findings=_findings(scores, prompts, answers))

    def _total(self, scores: dict[str, np.ndarray]) -> np.ndarray:
        weights = np.array([getattr(self.params, f"weight_{part}") for part in scores])[:, None]
        values = np.stack(list(scores.values()))
        counting = np.where(np.isnan(values), 0.0, weights)
        sums = counting.sum(axis=0)
        total = np.nansum(values * counting, axis=0)
        mean = np.zeros(len(total))
        np.divide(total, sums, out=mean, where=sums > 0)
        return mean

    def _with_scores(self, table: pa.Table, scores: dict[str, np.ndarray]) -> pa.Table:
        arrays = [pa.array(values, pa.float32(), from_pandas=True) for values in scores.values()]
        column = pa.StructArray.from_arrays(arrays, fields=list(self._type()))
        if self.params.column in table.column_names:
            return table.set_column(table.column_names.index(self.params.column), self.params.column, column)
        return table.append_column(self.params.column, column)

    def _type(self) -> pa.DataType:
        judged = ("judge",) if self.params.judge is not None else ()
        return pa.struct([pa.field(part, pa.float32()) for part in (*PARTS, *judged, "total")])


def _findings(scores: dict[str, np.ndarray], prompts: pl.Series, answers: pl.Series) -> dict[str, Finding]:
    """Summarize each part's distribution, and the rows with the lowest and highest totals."""
    found: dict[str, Finding] = {part: Histogram.of(values, SCORE_EDGES) for part, values in scores.items()}
    order = np.argsort(scores["total"], kind="stable")

    def standing(index: int) -> Standing:
        row: dict[str, Any] = {
            "prompt": prompts[index][:_SHOWN_CHARACTERS],
            "answer": answers[index][:_SHOWN_CHARACTERS],
            "scores": {
                part: None if np.isnan(values[index]) else round(float(values[index]), 4)
                for part, values in scores.items()
            },
        }
        return Standing(value=float(scores["total"][index]), row=row)

    lowest = [standing(int(index)) for index in order[:_SHOWN]]
    highest = [standing(int(index)) for index in order[::-1][:_SHOWN]]
    found["rows"] = Ranking(limit=_SHOWN, lowest=lowest, highest=highest)
    return found


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_floating(kind) or pa.types.is_integer(kind))


def _numbers(column: pa.ChunkedArray) -> np.ndarray:
    """Convert a column of numbers to float64, with NaN for null."""
    values: np.ndarray = column.cast(pa.float64()).to_numpy()
    return values
