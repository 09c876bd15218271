"""Scores that a judge gives: a language model, a reward model, whatever scores answers."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pyarrow as pa
from trellis_contracts.recipe import Text

from trellis_data.findings import Histogram
from trellis_data.layout import Batch, Layout
from trellis_data.operator import OperatorProblem, Params, RowOperator, parameter
from trellis_data.outcome import Outcome, kept_all
from trellis_data.scoring.answers import answer_columns, asked
from trellis_data.scoring.scorer import Pair, Scorer

_EDGES = [step / 20 for step in range(21)]


class JudgeParams(Params):
    """Who judges, and what is shown."""

    scorer: str = parameter(
        ...,
        min_length=1,
        title=Text(en="Judge", zh="裁判"),
        help=Text(
            en="Name of a configured judge. Calls are rate-limited and within its budget.",
            zh="运行环境中已配置的裁判名称；调用受速率和费用上限限制。",
        ),
    )
    column: str = parameter(
        "judge",
        min_length=1,
        title=Text(en="Column", zh="列"),
        help=Text(
            en="Output column for the score (0 to 1); empty if the judge returned none.",
            zh="写入评分（0 到 1）的列；裁判未给出时为空。",
        ),
    )
    characters: int = parameter(
        8000,
        ge=100,
        le=200_000,
        title=Text(en="Characters shown", zh="展示的字符数"),
        help=Text(
            en="Max characters of prompt and answer sent to the judge, to limit costs.",
            zh="裁判最多看到提示和回答的这些字符，以限制每次调用的费用。",
        ),
    )


class Judge(RowOperator):
    """Adds a judge's score; rows that it could not score go on without one and are counted by the reason."""

    id = "judge"
    group = "score"
    title = Text(en="Judge", zh="模型裁判")
    help = Text(
        en="Scores each answer with a language model or reward model. The score can be "
        "part of the quality score.",
        zh="由语言模型或奖励模型为每行回答打分；该分数可计入质量评分。",
    )
    Params = JudgeParams
    params: JudgeParams

    def check(self, schema: pa.Schema, layout: Layout) -> None:
        """Check that there is an answer, the judge is known and the column is free."""
        answer_columns(schema, layout)
        self._scorer()
        if self.params.column in schema.names:
            raise OperatorProblem(
                "column_taken", f"Column '{self.params.column}' already exists; choose another name."
            )

    def schema_after(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema with one more column."""
        return schema.append(pa.field(self.params.column, pa.float32()))

    def apply(self, batch: Batch) -> Outcome:
        """Ask; where not one of several rows gets a score for want of an answer, the run stops."""
        prompts, answers = (texts.str.slice(0, self.params.characters) for texts in asked(batch))
        pairs = [Pair(prompt, answer) for prompt, answer in zip(prompts, answers, strict=True)]
        verdicts = self._scorer().score(pairs)
        problems = Counter(verdict.problem for verdict in verdicts if verdict.problem is not None)
        if verdicts and problems["unreachable"] == len(verdicts):
            raise OperatorProblem(
                "judge_unreachable",
                f"The judge '{self.params.scorer}' answered none of {len(verdicts)} calls; the run can "
                "go on when "
                "it is back.",
            )
        scores = np.array(
            [np.nan if each.score is None else each.score for each in verdicts], dtype=np.float64
        )
        table = batch.table.append_column(
            self.params.column, pa.array(scores, pa.float32(), from_pandas=True)
        )
        return replace(
            kept_all(table, ~np.isnan(scores)),
            counts=problems,
            findings={"score": Histogram.of(scores, _EDGES)},
        )

    def _scorer(self) -> Scorer:
        try:
            return self.context.scorers[self.params.scorer]
        except KeyError:
            known = ", ".join(self.context.scorers) or "none"
            raise OperatorProblem(
                "judge_unknown", f"There is no judge '{self.params.scorer}' here; known are {known}."
            ) from None
