"""What a comparison of jobs answers. Values are keyed by the id of the job."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from trellis_api.evaluations.schemas import ComparedBenchmark
from trellis_api.jobs.rollout_schemas import RolloutRead, Split
from trellis_api.jobs.schemas import HeadlineMetric, JobRead, MetricSeries, Mode

ParameterGroup = Literal["run", "model", "data", "params", "overrides"]


class ComparedParameter(BaseModel):
    """One setting in which the jobs differ."""

    group: ParameterGroup
    name: str = Field(description="Nested settings are joined by points.")
    values: dict[str, Any] = Field(description="By job; a job without this setting is missing.")


class ComparedMetric(BaseModel):
    """Newest and best value of one metric in every job that reported it."""

    key: str
    mode: Mode
    values: dict[str, HeadlineMetric]


class MetricChoice(BaseModel):
    """A metric that can be compared."""

    key: str
    run_count: int = Field(description="Jobs that reported it.")


class JobComparison(BaseModel):
    """Jobs side by side."""

    jobs: list[JobRead] = Field(description="In the requested order.")
    missing: list[str] = Field(description="Ids of jobs that were deleted.")
    parameters: list[ComparedParameter] = Field(description="Only those that differ.")
    metric_keys: list[MetricChoice] = Field(description="Of all jobs; the most common first.")
    metrics: list[ComparedMetric]
    seed_groups: list[list[str]] = Field(description="Jobs that differ only in the seed.")


class RunCurves(BaseModel):
    """Curves of one job."""

    job_id: str
    series: list[MetricSeries]


class ComparedCurves(BaseModel):
    """Curves of several jobs."""

    runs: list[RunCurves]


class EvaluationReference(BaseModel):
    """An evaluation of a job's checkpoint or of a model that was exported from it."""

    id: str
    name: str
    step: int | None


class EvaluatedPair(BaseModel):
    """A job's newest evaluation on a benchmark compared with the baseline's."""

    baseline: EvaluationReference
    evaluation: EvaluationReference
    comparison: ComparedBenchmark = Field(description="A is the baseline, B the job.")


class RunEvaluations(BaseModel):
    """A job's evaluations compared with the baseline's."""

    job_id: str
    benchmarks: list[EvaluatedPair] = Field(description="Empty if they share no benchmark.")


class ComparedEvaluations(BaseModel):
    """Paired comparisons with the baseline."""

    baseline: str
    evaluated: list[str] = Field(description="Jobs with a finished evaluation.")
    runs: list[RunEvaluations]


class PromptResponses(BaseModel):
    """What the jobs answered to one prompt."""

    prompt: str
    responses: dict[str, list[RolloutRead]]


class ComparedRollouts(BaseModel):
    """Sampled responses to prompts shared by all jobs."""

    split: Split
    steps: dict[str, int] = Field(description="The step of each job that is shown.")
    total: int = Field(description="Prompts shared by all jobs.")
    items: list[PromptResponses]
