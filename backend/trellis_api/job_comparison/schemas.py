"""What a comparison of jobs answers. Values are keyed by the id of the job."""

from typing import Any, Literal

from pydantic import BaseModel, Field

from trellis_api.evaluations.schemas import ComparedBenchmark
from trellis_api.jobs.rollouts.schemas import RolloutRead, Split
from trellis_api.jobs.schemas import HeadlineMetric, JobRead, MetricSeries, Mode, StepClock

#: A job's newest value of a metric, or its best.
Take = Literal["last", "best"]
ParameterGroup = Literal["run", "model", "data", "params", "overrides"]


class ComparedParameter(BaseModel):
    """One setting in which the jobs differ."""

    group: ParameterGroup
    name: str = Field(description="Nested settings are joined by points.")
    values: dict[str, Any] = Field(description="By job; a job without this setting is missing.")


class ComparedMetric(BaseModel):
    """Newest and best value of one metric in every job that reported it."""

    key: str
    mode: Mode | None = Field(description="Which values are better; null where neither are, as of entropy.")
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


class SeedValue(BaseModel):
    """The metric in one job."""

    job_id: str
    seed: int
    value: float


class SeedGroup(BaseModel):
    """Jobs that differ only in the seed, or one trial of a sweep."""

    name: str = Field(description="The sweep's name of the trial, else what its jobs' names share.")
    job_ids: list[str]
    seed_count: int = Field(description="Seeds with a value; jobs with the same seed are averaged first.")
    mean: float | None
    deviation: float | None = Field(description="Sample standard deviation over seeds; null for one seed.")
    values: list[SeedValue]
    left_out: list[str] = Field(
        description="Jobs without a value; where some have succeeded, also those that have not."
    )
    failed: list[str] = Field(description="Of those left out, jobs that failed or crashed.")


Verdict = Literal["better", "worse", "different", "unclear", "too_few_seeds", "no_spread"]


class GroupDifference(BaseModel):
    """A group compared with the baseline's."""

    group: int = Field(description="Its index in `groups`.")
    verdict: Verdict = Field(
        description="Of the group: better or worse where p_adjusted is below 0.05, different where it is but "
        "the metric has no better end, too_few_seeds where one of the two "
        "has a single seed, no_spread where the seeds of neither differ."
    )
    difference: float = Field(description="Mean of the group minus mean of the baseline's.")
    low: float | None = Field(description="95 % interval of the difference (Welch's t).")
    high: float | None
    p_value: float | None = Field(description="Of Welch's t-test, two-sided.")
    p_adjusted: float | None = Field(description="By Holm's method, over all groups with a test.")


class BestRun(BaseModel):
    """The job with the best value of the metric: of those that succeeded, or of all as long as none has."""

    job_id: str
    value: float
    step: int | None


class ComparedSeeds(BaseModel):
    """Groups of seeds compared on one metric."""

    metric: str | None = Field(description="Null where no two groups share a metric.")
    mode: Mode | None = Field(description="Which values are better; null where neither are.")
    take: Take
    method: Literal["welch_t"] = "welch_t"
    groups: list[SeedGroup]
    baseline: int = Field(description="Index of the group with the baseline.")
    differences: list[GroupDifference] = Field(description="Of groups with a value, without the baseline's.")
    values: dict[str, float] = Field(description="By job: the metric of each that reported it.")
    best: BestRun | None


class RunCurves(BaseModel):
    """Curves of one job."""

    job_id: str
    series: list[MetricSeries]
    clock: StepClock | None = Field(
        default=None, description="Null unless asked for, and where nothing of it was reported."
    )


class ComparedCurves(BaseModel):
    """Curves of several jobs."""

    runs: list[RunCurves]


class MeanSeries(BaseModel):
    """Mean of one metric over the jobs of a group. `steps`, `means` and `deviations` run in parallel."""

    key: str
    steps: list[int] = Field(description="Steps at which all jobs were measured.")
    means: list[float]
    deviations: list[float] = Field(description="Sample standard deviation over the jobs, at each step.")
    stride: int = Field(
        description="1 with all shared steps; else one of so many, chosen without looking at the values."
    )


class GroupMeans(BaseModel):
    """Means over some jobs."""

    job_ids: list[str]
    series: list[MeanSeries] = Field(description="Only metrics that all of them have at a common step.")


class ComparedMeans(BaseModel):
    """Means over groups of jobs, in the order in which the groups were named."""

    groups: list[GroupMeans]


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
    p_adjusted: float | None = Field(
        description="p_value after Holm's correction for the jobs that were tested on this benchmark."
    )


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
    """Sampled responses to prompts shared by all jobs that have responses."""

    split: Split
    steps: dict[str, int] = Field(description="The step of each job that is shown.")
    available_steps: list[int] = Field(
        description="Steps at which any of the jobs has responses of this split, rising; "
        "at most the newest 500. With the first page only (`offset` 0); empty on others."
    )
    without: list[str] = Field(description="Jobs without responses there; they are left out.")
    total: int = Field(description="Prompts shared by the others.")
    items: list[PromptResponses]
