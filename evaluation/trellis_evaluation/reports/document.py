"""What a report is made of, as plain data."""

from datetime import datetime
from typing import Any, Literal

from pydantic import Field
from trellis_contracts.evaluation import BenchmarkResult, Sample, Score
from trellis_contracts.recipe import Strict

from trellis_evaluation.comparison import Comparison

Language = Literal["en", "zh"]
LANGUAGES: tuple[Language, ...] = ("en", "zh")


class ReportEvaluation(Strict):
    """One evaluation of the report."""

    id: str
    name: str
    #: The model, or the job and the step of its checkpoint, in words.
    target: str
    finished_at: datetime | None = None
    results: list[BenchmarkResult]
    #: As ``EvaluationResult`` holds it.
    manifest: dict[str, Any] = Field(default_factory=dict)
    #: Samples to show, by label.
    examples: dict[str, list[Sample]] = Field(default_factory=dict)


class ReportComparison(Strict):
    """Two of the evaluations on one benchmark, by their ids."""

    a: str
    b: str
    comparison: Comparison


class HistoryPoint(Strict):
    """A score of a benchmark at some time of a model's life."""

    label: str
    metric: str
    #: Points of one series are joined: a training job, or the versions of a model.
    series: str
    #: Of the training; None where versions follow each other.
    step: int | None = None
    #: What is shown at the point where there is no step.
    name: str = ""
    score: Score


class ReportInput(Strict):
    """A whole report."""

    title: str
    created_at: datetime
    evaluations: list[ReportEvaluation] = Field(min_length=1)
    comparisons: list[ReportComparison] = Field(default_factory=list)
    #: In the order in which they are joined.
    history: list[HistoryPoint] = Field(default_factory=list)
