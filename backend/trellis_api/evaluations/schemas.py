"""Evaluations as clients ask for them and see them."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from trellis_contracts.evaluation import (
    AnyOrder,
    BenchmarkResult,
    EngineSettings,
    Sample,
    Score,
    Verdict,
    VerdictCounts,
)
from trellis_contracts.renamed import Renamed, deprecated_field
from trellis_contracts.states import JobState

from trellis_api.core.ids import id_pattern
from trellis_api.core.references import NamedReference
from trellis_api.core.texts import Name
from trellis_api.evaluations.orders import MAX_SEED, Orders
from trellis_api.jobs.schemas import Failure, JobName, Progress

MAX_TARGETS = 20


class ModelTarget(BaseModel):
    """A registered model."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["model"] = "model"
    model: Name = Field(description="ID (mdl_...) or name.")


class CheckpointTarget(BaseModel):
    """A checkpoint of a job."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["checkpoint"] = "checkpoint"
    job: Annotated[str, StringConstraints(max_length=32, pattern=id_pattern("job"))]
    step: int = Field(ge=0, le=2**53)


Target = Annotated[ModelTarget | CheckpointTarget, Field(discriminator="kind")]


class EvaluationPlan(BaseModel):
    """Targets, benchmarks and estimates."""

    model_config = ConfigDict(extra="forbid")

    targets: list[Target] = Field(min_length=1, max_length=MAX_TARGETS, description="One evaluation each.")
    benchmarks: Orders
    engine: EngineSettings = Field(default_factory=EngineSettings)
    seed: int = Field(default=0, ge=0, lt=MAX_SEED, description="Samples problems if there is a limit.")


class EvaluationCreate(EvaluationPlan):
    """Measure models or checkpoints on benchmarks."""

    name: JobName | None = Field(default=None, description="Default the target and the benchmarks.")
    priority: int = Field(default=0, ge=-100, le=100, description="Among evaluations; higher runs first.")


class EvaluationTarget(BaseModel):
    """The target. Names are null if it was deleted."""

    kind: Literal["model", "checkpoint"]
    name: str = Field(description="Its name when the evaluation was created.")
    model: NamedReference | None = Field(description="The model, or the one that the job started from.")
    job: NamedReference | None
    step: int | None


class MeasuredDataset(BaseModel):
    """The dataset of the platform that a benchmark measures on."""

    id: str
    name: str | None = Field(description="After a deletion the last known name; null if none is known.")
    version: str | None = Field(description="Null where several versions are meant.")
    is_deleted: bool


class EvaluationRead(Renamed):
    """An evaluation."""

    old_names: ClassVar = {"is_displaced": "preempted", "waits_for": "pending_benchmarks"}

    id: str
    name: str
    job_id: str = Field(description="The job that carries it out: its log, metrics and event stream.")
    trigger: Literal["person", "training"] = Field(description="training: asked for by the job's settings.")
    target: EvaluationTarget
    benchmarks: list[AnyOrder] = Field(description="Each with its label.")
    datasets: dict[str, MeasuredDataset] = Field(
        description="By label, of benchmarks on datasets of the platform."
    )
    engine: EngineSettings
    seed: int
    priority: int
    state: JobState
    attempt: int
    preempted: bool = Field(description="It is preempted by training jobs and resumes afterwards.")
    pending_benchmarks: list[str] = Field(description="Benchmarks that are being downloaded.")
    progress: Progress = Field(description="Steps are samples.")
    eta_s: float | None
    queue_position: int | None
    failure: Failure | None
    results: list[BenchmarkResult] | None = Field(
        description="Null until it has succeeded; with groups only when reading one evaluation."
    )
    partial: dict[str, dict[str, float | None]] = Field(
        description="Label → metric → score so far, while it runs (only when reading one evaluation)."
    )
    created_at: datetime
    queued_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    can_cancel: bool
    can_retry: bool
    can_delete: bool
    last_event_id: int = Field(description="Follow the job's event stream from here to miss nothing.")

    @deprecated_field("preempted")
    def is_displaced(self) -> bool:
        return self.preempted

    @deprecated_field("pending_benchmarks")
    def waits_for(self) -> list[str]:
        return self.pending_benchmarks


class EvaluationsCreated(BaseModel):
    """The evaluations that were queued, in the order of the targets."""

    items: list[EvaluationRead]


class BenchmarkEstimate(BaseModel):
    """Estimate for one benchmark and target."""

    label: str
    samples: int | None = Field(description="Null for tasks with an unknown number of rows.")
    prompt_tokens: int | None = Field(description="Null without a comparable measurement.")
    output_tokens: int | None
    seconds: float | None
    measured_in: int = Field(description="Finished evaluations that the estimate is based on.")
    judge_cost: float | None = Field(description="Maximum cost in US dollars; null without a judge.")


class TargetEstimate(BaseModel):
    """Estimate for one target."""

    target: Target
    name: str
    benchmarks: list[BenchmarkEstimate]
    seconds: float | None = Field(description="Null if a benchmark was never run here.")


class EvaluationEstimate(BaseModel):
    """Estimate for the whole plan."""

    targets: list[TargetEstimate]
    samples: int | None
    output_tokens: int | None
    seconds: float | None
    judge_cost: float = Field(description="Cost limit for judges in US dollars.")
    to_install: list[str] = Field(description="Benchmarks that would be downloaded first.")


class EvaluationManifest(BaseModel):
    """What the scores were measured with."""

    evaluation_id: str
    manifest: dict[str, Any] = Field(description="Engine, versions, hash of the prompts, data, seed.")


class SampleChanges(BaseModel):
    """Filter by difference from another evaluation."""

    better: int
    worse: int
    otherwise: int = Field(description="Same score, but different verdict or answer.")
    same: int
    only_here: int
    only_there: int


class SamplePage(BaseModel):
    """Samples of a benchmark, in sampling order of the problems."""

    label: str
    items: list[Sample]
    next_cursor: str | None = Field(
        description="Pass as `cursor` for the next page; null at the end. A search may return short pages."
    )
    fitting: int = Field(description="Samples that match the filters, ignoring the search.")
    counts: VerdictCounts = Field(description="Of all samples of the benchmark, whatever the filters.")
    groups: dict[str, dict[str, int]] = Field(description="Samples by kind and name of group.")
    changes: SampleChanges | None = Field(description="Null where there is nothing to compare with.")


class SampleRead(BaseModel):
    """One sample, and the same problem's in another evaluation."""

    sample: Sample
    against: Sample | None = Field(description="Null where none was asked for, or it has no such problem.")


Changed = Literal["any", "better", "worse"]


# -- comparisons, ranks and history


Obstacle = Literal["other_benchmark", "other_metric", "other_data", "no_common_problems", "samples_missing"]


class ComparedBenchmark(BaseModel):
    """One benchmark of two evaluations, problem by problem."""

    label: str
    benchmark: str
    dataset: MeasuredDataset | None = Field(description="Of the platform; the one b was measured on.")
    metric: str
    a: Score
    b: Score
    difference: float = Field(description="b minus a.")
    low: float | None = Field(description="95 % interval of the difference.")
    high: float | None
    p_value: float | None
    test: str | None = Field(
        description="mcnemar_exact, mcnemar_corrected, paired_bootstrap or paired_t; null without pairs."
    )
    pairs: int = Field(description="Problems that both evaluations share.")
    improved: int
    worsened: int
    obstacle: Obstacle | None = Field(description="Why they cannot be compared problem by problem.")
    differences: list[str] = Field(description="Settings that differ, so the scores are not comparable.")


class ComparedWithBaseline(BaseModel):
    """One evaluation against the baseline, on one benchmark."""

    evaluation_id: str
    comparison: ComparedBenchmark = Field(description="a is the baseline, b this evaluation.")
    p_adjusted: float | None = Field(
        description="p_value after Holm's correction for the comparisons of this benchmark."
    )


class ComparedTable(BaseModel):
    """One benchmark of several evaluations."""

    label: str
    benchmark: str
    dataset: MeasuredDataset | None = Field(description="Of the platform; the one of the baseline.")
    metric: str
    baseline: Score
    others: list[ComparedWithBaseline] = Field(description="Those that have the benchmark, in order.")
    missing: list[str] = Field(description="Evaluations without this benchmark.")


class UnsharedBenchmark(BaseModel):
    """A benchmark that cannot be compared: the baseline lacks it, or all others do."""

    label: str
    evaluations: list[str] = Field(description="Those that have it.")


class ComparisonRead(BaseModel):
    """2 to 6 evaluations side by side; the first is the baseline."""

    baseline: str
    evaluations: list[EvaluationRead] = Field(description="In the requested order.")
    benchmarks: list[ComparedTable]
    unshared: list[UnsharedBenchmark]


class ComparedAnswer(BaseModel):
    """The answer of one evaluation to a problem."""

    evaluation_id: str
    position: int = Field(description="Of the sample in its evaluation.")
    number: int
    verdict: Verdict
    score: float
    extracted: str | None


class DisagreementRead(BaseModel):
    """A problem that the evaluations do not answer alike."""

    key: str
    number: int
    prompt: str = Field(description="As the baseline's model read it.")
    gold: str
    answers: list[ComparedAnswer] = Field(description="Baseline first; without those that lack the problem.")


class DisagreementPage(BaseModel):
    """Samples on which evaluations disagree, in the baseline's order."""

    label: str
    items: list[DisagreementRead]
    next_cursor: str | None
    total: int


class RankedScore(BaseModel):
    """A target's score on the platform's board."""

    rank: int
    evaluation_id: str
    target: EvaluationTarget
    score: Score
    configuration: str = Field(description="Scores of one configuration can be compared.")
    created_at: datetime


class LeaderboardBenchmark(BaseModel):
    """A benchmark with scores and its metrics, headline first."""

    label: str
    benchmark: str
    dataset: MeasuredDataset | None = Field(description="Of the platform; one label may be used for several.")
    metrics: list[str]


class LeaderboardConfiguration(BaseModel):
    """An evaluation setup; scores of different setups are not comparable."""

    id: str
    evaluations: int
    newest_at: datetime
    order: AnyOrder
    dataset: MeasuredDataset | None
    seed: int


class LeaderboardRead(BaseModel):
    """One score of each target, best first, all measured in the same way on the same data."""

    label: str | None = Field(description="Null while there are no scores.")
    dataset: MeasuredDataset | None
    metric: str | None
    mode: Literal["max", "min"] = Field(description="Whether higher or lower is better.")
    configuration: str | None
    configurations: list[LeaderboardConfiguration] = Field(description="That of most evaluations first.")
    items: list[RankedScore]
    benchmarks: list[LeaderboardBenchmark] = Field(description="Other metrics to rank by.")


class MatrixColumn(BaseModel):
    """A benchmark of the matrix: its headline metric, and the setup that most evaluations used."""

    benchmark: LeaderboardBenchmark
    metric: str
    mode: Literal["max", "min"] = Field(description="Whether higher or lower is better.")
    configuration: LeaderboardConfiguration
    other_evaluations: int = Field(description="Measured with other setups, thus not shown.")


class MatrixCell(BaseModel):
    """A target's score on one benchmark."""

    rank: int = Field(description="Among the targets of the column, 1 the best.")
    evaluation_id: str
    score: Score
    created_at: datetime


class MatrixRow(BaseModel):
    """A target and its scores."""

    target: EvaluationTarget
    cells: list[MatrixCell | None] = Field(description="One per column; null where it was not measured.")


class MatrixRead(BaseModel):
    """Models and checkpoints by benchmarks; a column's scores were all measured in the same way."""

    columns: list[MatrixColumn] = Field(description="Most measured first.")
    rows: list[MatrixRow] = Field(description="Those with most scores first.")
    more_columns: int = Field(description="Benchmarks left out.")
    more_rows: int = Field(description="Targets left out.")


class HistoryPoint(BaseModel):
    """One score in time."""

    generation: int = Field(description="0, 1, 2 ... from the oldest ancestor to the model itself.")
    evaluation_id: str
    target: EvaluationTarget
    label: str
    benchmark: str
    dataset: MeasuredDataset | None
    score: Score
    configuration: str
    created_at: datetime


class HistoryRead(BaseModel):
    """Scores of a model and its ancestors, or of a job's checkpoints; oldest first."""

    items: list[HistoryPoint]
