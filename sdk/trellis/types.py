"""What the API answers, as typed dictionaries.

Made from `frontend/openapi.json` by `python -m trellis_tools.documents sdk-types --write`.
"""

from __future__ import annotations

from typing import Any, Literal, NotRequired, TypedDict

DataFormat = Literal[
    "prompt-answer", "messages", "preference", "unpaired-preference", "text", "verl-rl", "unknown"
]

DataTaskKind = Literal["import", "pipeline", "preview", "statistics", "diff", "tokens", "generate"]

DataTaskState = Literal["queued", "running", "succeeded", "failed", "cancelled"]

DatasetState = Literal["creating", "ready", "failed"]

DryRunState = Literal["queued", "running", "succeeded", "failed", "cancelled"]

DueState = Literal["waiting", "queued", "recorded", "failed", "skipped"]

EndpointState = Literal["starting", "ready", "stopping", "stopped", "failed"]

Engine = Literal["verl-ppo", "verl-sft", "trl", "export", "retrieval", "evaluate", "serve"]

EnvironmentState = Literal["queued", "making", "ready", "failed"]

FetchStage = Literal["downloading", "converting", "generating", "inspecting"]

InstallState = Literal["absent", "pending", "installing", "ready", "failed"]

JobState = Literal["queued", "launching", "running", "stopping", "stopped", "succeeded", "failed", "crashed"]

ModelCause = Literal["cancelled"]

ModelState = Literal["pending", "fetching", "ready", "failed"]

PipelineState = Literal["idle", "running", "stopping", "succeeded", "failed", "stopped"]

Probe = Literal["gold", "answer", "empty", "truncated", "repeated", "format_only", "wrong", "rollouts"]

ReportState = Literal["pending", "writing", "ready", "failed"]

RunState = Literal["queued", "running", "stopped", "succeeded", "failed", "pruned", "refused", "deleted"]

StageState = Literal["waiting", "running", "succeeded", "failed", "stopped", "skipped", "blocked"]

SweepState = Literal["running", "stopping", "stopped", "succeeded", "failed"]

TransferKind = Literal["push", "gguf"]

TransferState = Literal["queued", "running", "succeeded", "failed", "cancelled"]

Verdict = Literal["correct", "wrong", "unanswered", "truncated", "failed"]

VoteVerdict = Literal["a", "b", "tie", "neither"]

WorkflowState = Literal["queued", "installing", "ready", "failed"]


class AlarmRead(TypedDict):
    """Something is visibly wrong with a run; the run goes on."""

    advice: Text
    attempt: int
    cleared_at: str | None
    code: str
    example_id: int | None
    first_step: int
    is_active: bool
    last_step: int
    metric: str | None
    raised_at: str
    severity: Literal["warning", "critical"]
    step: int
    threshold: float | None
    title: Text
    value: float | None


class BenchmarkEstimate(TypedDict):
    """Estimate for one benchmark and target."""

    judge_cost: float | None
    label: str
    measured_in: int
    output_tokens: int | None
    prompt_tokens: int | None
    samples: int | None
    seconds: float | None


class BenchmarkRead(TypedDict):
    """A benchmark of the catalogue."""

    can_install: bool
    default_max_tokens: int
    default_shots: int
    description: Text
    group_kinds: list[str]
    groups: dict[str, list[str]]
    installed_at: str | None
    metrics: list[str]
    name: str
    needs: Literal["generate", "loglikelihood"]
    paper: str | None
    revision: str | None
    rows: dict[str, int]
    runs_code: bool
    sha256: str | None
    size_bytes: int | None
    source: BenchmarkSource
    state: InstallState
    state_reason: str | None
    title: Text
    unavailable: Text | None


class BenchmarkResult(TypedDict):
    """What a model scored on one benchmark."""

    benchmark: str
    counts: VerdictCounts
    groups: NotRequired[list[GroupScore]]
    headline: str
    label: str
    output_tokens: int
    problems: int
    prompt_tokens: int
    remarks: NotRequired[dict[str, float | str]]
    scores: list[Score]
    seconds: float


class BenchmarkSource(TypedDict):
    """Where the files come from."""

    license: NotRequired[str | None]
    repo_id: str
    revision: str


class BestBy(TypedDict):
    """The metric that selects the best checkpoint."""

    metric: str
    mode: NotRequired[Literal["max", "min"] | None]


class BestByBenchmark(TypedDict):
    """The score that selects the best checkpoint."""

    label: str
    metric: NotRequired[str | None]
    mode: Literal["max", "min"]


class BestRun(TypedDict):
    """The job with the best value of the metric: of those that succeeded, or of all as long as none has."""

    job_id: str
    step: int | None
    value: float


class Bottleneck(TypedDict):
    """What limits a run, and the figures that say so."""

    engines_busy: float | None
    group: str
    kv_cache_use: float | None
    longest_response: float | None
    phases: list[str]
    queued_share: float | None
    seconds: float
    share: float
    steps: int
    tail_share: float | None
    workers_busy: float | None


class Budget(TypedDict):
    """When no more runs are started."""

    cost: NotRequired[float | None]
    hours: NotRequired[float | None]
    runs: NotRequired[int | None]
    slot_hours: NotRequired[float | None]


class CatalogueSource(TypedDict):
    """An entry of the catalogue (``GET /models/catalogue``); fetched by a worker from its pinned origin."""

    kind: Literal["catalogue"]
    name: str


class CheckpointEvaluation(TypedDict):
    """State of a checkpoint evaluation requested by its job."""

    id: str | None
    is_final: bool
    job_state: JobState | None
    problem: str | None
    state: DueState


class CheckpointRead(TypedDict):
    """A complete checkpoint."""

    attempt: int
    can_delete: bool
    can_export: bool
    can_resume: bool
    created_at: str
    evaluation: CheckpointEvaluation | None
    has_adapter: bool
    hf_path: str | None
    is_best: bool
    is_kept: bool
    is_pruned: bool
    kept_because: list[Literal["pinned", "best", "resumed", "exporting", "evaluating", "serving", "model"]]
    metric_steps: dict[str, int]
    metrics: dict[str, float | None]
    path: str
    size_bytes: int
    step: int


class CheckpointSaved(TypedDict):
    """A checkpoint is complete."""

    has_hf: bool
    size_bytes: int
    step: int


class CheckpointTarget(TypedDict):
    """A checkpoint of a job."""

    job: str
    kind: Literal["checkpoint"]
    step: int


class ChoiceScorer(TypedDict):
    """The letter in the answer is that of the correct choice."""

    choices_column: str
    kind: Literal["choice"]


class Cluster(TypedDict):
    """Rows that are duplicates of each other."""

    members: list[ClusterMember]
    number: int
    size: int


class ClusterMember(TypedDict):
    """A row of a cluster."""

    position: int
    similarity: float
    survives: bool
    text: str | None


class Clusters(TypedDict):
    """A window of clusters, largest first."""

    cluster_count: int
    clusters: list[Cluster]
    offset: int


class CodeScorer(TypedDict):
    """A Python file of the platform with ``score(prompt, response, answer, row)``, run isolated."""

    file: str
    kind: Literal["file"]
    threshold: float
    version: NotRequired[int | None]


class ColumnChangeRead(TypedDict):
    """A column whose type changed; null if there is no such column."""

    after: str | None
    before: str | None
    name: str


class ColumnRead(TypedDict):
    """One column and its type."""

    name: str
    type: str


class ColumnStatistics(TypedDict):
    """One column."""

    empty: int
    least: NotRequired[float | None]
    most: NotRequired[float | None]
    name: str
    nulls: int
    total: NotRequired[float | None]
    type: str
    values: int


class ComparedBenchmark(TypedDict):
    """One benchmark of two evaluations, problem by problem."""

    a: Score
    b: Score
    benchmark: str
    dataset: MeasuredDataset | None
    difference: float
    differences: list[str]
    high: float | None
    improved: int
    label: str
    low: float | None
    metric: str
    obstacle: (
        Literal["other_benchmark", "other_metric", "other_data", "no_common_problems", "samples_missing"]
        | None
    )
    p_value: float | None
    pairs: int
    test: str | None
    worsened: int


class ComparedCurves(TypedDict):
    """Curves of several jobs."""

    runs: list[RunCurves]


class ComparedEvaluations(TypedDict):
    """Paired comparisons with the baseline."""

    baseline: str
    evaluated: list[str]
    runs: list[RunEvaluations]


class ComparedMetric(TypedDict):
    """Newest and best value of one metric in every job that reported it."""

    key: str
    mode: Literal["max", "min"] | None
    values: dict[str, HeadlineMetric]


class ComparedParameter(TypedDict):
    """One setting in which the jobs differ."""

    group: Literal["run", "model", "data", "params", "overrides"]
    name: str
    values: dict[str, Any]


class ComparedSeeds(TypedDict):
    """Groups of seeds compared on one metric."""

    baseline: int
    best: BestRun | None
    differences: list[GroupDifference]
    groups: list[SeedGroup]
    method: Literal["welch_t"]
    metric: str | None
    mode: Literal["max", "min"] | None
    take: Literal["last", "best"]
    values: dict[str, float]


class ComparedTable(TypedDict):
    """One benchmark of several evaluations."""

    baseline: Score
    benchmark: str
    dataset: MeasuredDataset | None
    label: str
    metric: str
    missing: list[str]
    others: list[ComparedWithBaseline]


class ComparedWithBaseline(TypedDict):
    """One evaluation against the baseline, on one benchmark."""

    comparison: ComparedBenchmark
    evaluation_id: str
    p_adjusted: float | None


class ComparisonRead(TypedDict):
    """2 to 6 evaluations side by side; the first is the baseline."""

    baseline: str
    benchmarks: list[ComparedTable]
    evaluations: list[EvaluationRead]
    unshared: list[UnsharedBenchmark]


class ContainsScorer(TypedDict):
    """The answer contains the reference as a separate word."""

    ignore_case: bool
    kind: Literal["contains"]


class Cost(TypedDict):
    """An amount of money."""

    amount: float
    currency: str


class Counts(TypedDict):
    """How many rows differ, and how many do not."""

    added: int
    changed: int
    removed: int
    same: int


class CustomOrder(TypedDict):
    """Rows of a dataset of the platform."""

    benchmark: Literal["custom"]
    chat: Literal["auto", "always", "never"]
    columns: NotRequired[dict[str, str]]
    dataset: str
    decoding: NotRequired[Decoding]
    group_column: NotRequired[str | None]
    label: NotRequired[str | None]
    limit: NotRequired[int | None]
    scorer: (
        ExactScorer
        | ContainsScorer
        | RegexScorer
        | NumericScorer
        | MathScorer
        | JsonScorer
        | ChoiceScorer
        | OverlapScorer
        | JudgeScorer
        | ToolUseScorer
        | CodeScorer
    )
    shots: NotRequired[int | None]
    split: NotRequired[str | None]
    system: NotRequired[str | None]
    template: NotRequired[str | None]
    version: NotRequired[str | None]


class CutValue(TypedDict):
    """A value that is truncated on a page; read the row alone or download it for the full value."""

    column: str
    row: int


DataConversion = TypedDict(
    "DataConversion", {"columns": "dict[str, str]", "from": "DataFormat", "how": "Text", "to": "DataFormat"}
)


class DataFit(TypedDict):
    """Whether the dataset fits the recipe, and how to fix it if not."""

    columns: dict[str, str]
    conversion: DataConversion | None
    fits: bool
    found: DataFormat
    missing: list[MissingRole]
    offers: list[DataOffer]
    read_as: DataFormat
    sample: DataSample | None
    wanted: DataFormat


class DataOffer(TypedDict):
    """Another way to read the dataset; send both values with the job to use it."""

    columns: dict[str, str]
    format: DataFormat
    label: Text


class DataSample(TypedDict):
    """The first row of the dataset and its converted form. Long texts are truncated."""

    after: list[dict[str, Any]]
    before: dict[str, Any]
    problem: str | None


class DataTaskProgress(TypedDict):
    """Progress of a task; unknown values are null."""

    counts: NotRequired[dict[str, float]]
    eta_s: NotRequired[float | None]
    phase: str
    rows: NotRequired[int | None]
    rows_done: int
    rows_per_s: NotRequired[float | None]
    stage: NotRequired[int | None]
    stages: NotRequired[int | None]
    steps: NotRequired[list[str]]


class DataTaskRead(TypedDict):
    """A long-running dataset task with its progress and result."""

    attempt: int
    can_cancel: bool
    can_retry: bool
    cause: str | None
    created_at: str
    dataset: str
    dataset_name: str | None
    finished_at: str | None
    id: str
    kind: DataTaskKind
    made_dataset: str | None
    made_version: str | None
    progress: DataTaskProgress
    purpose: Literal["pipeline", "quality", "duplicates"] | None
    reason: str | None
    result: dict[str, Any] | None
    started_at: str | None
    state: DataTaskState
    version: str | None


class DatasetOrigin(TypedDict):
    """Where the rows of the first version came from."""

    dataset: NotRequired[str | None]
    kind: Literal["upload", "path", "hub", "s3", "pipeline", "generation", "sample"]
    name: str
    revision: NotRequired[str | None]
    sha256: NotRequired[str | None]
    size_bytes: NotRequired[int | None]
    version: NotRequired[str | None]


class DatasetRead(TypedDict):
    """A dataset. Row facts are those of the tip of its branch main; empty without rows."""

    columns: list[ColumnRead]
    created_at: str
    description: str
    format: DataFormat | None
    format_columns: dict[str, str]
    format_reason: str | None
    head: str | None
    id: str
    licences: list[str]
    name: str
    row_count: int
    size_bytes: int
    source: DatasetOrigin
    splits: dict[str, int]
    state: DatasetState
    task: DataTaskRead | None
    updated_at: str
    warnings: list[DatasetWarning]


class DatasetRows(TypedDict):
    """A window of rows, in their order."""

    columns: list[ColumnRead]
    cut: list[CutValue]
    offset: int
    row_count: int
    rows: list[dict[str, Any]]
    split: str
    version: str


class DatasetWarning(TypedDict):
    """A warning that does not prevent training."""

    code: str
    column: NotRequired[str | None]
    message: str
    row_count: NotRequired[int | None]


class Decoding(TypedDict):
    """How answers are generated; greedy by default."""

    max_tokens: NotRequired[int | None]
    temperature: float
    top_p: float


class DiffRead(TypedDict):
    """The difference between two versions, once computed."""

    after: str
    before: str
    columns: list[ColumnChangeRead] | None
    key: str | None
    splits: dict[str, Counts] | None
    statistics_after: Statistics | None
    statistics_before: Statistics | None
    task: DataTaskRead | None
    total: Counts | None


class DiskForecast(TypedDict):
    """What a run will write."""

    checkpoint_bytes: int
    checkpoints: int | None
    total_bytes: int | None


class DryRunProgress(TypedDict):
    """Progress of the scoring."""

    done: int
    total: int


class DryRunRead(TypedDict):
    """A dry run."""

    can_cancel: bool
    cause: str | None
    columns: dict[str, str]
    created_at: str
    dataset: NamedReference
    dataset_split: str | None
    dataset_version: str | None
    finished_at: str | None
    id: str
    job: str | None
    progress: DryRunProgress
    reason: str | None
    result: DryRunResult | None
    rewards: list[RewardTerm]
    rows: int
    seed: int
    started_at: str | None
    state: DryRunState
    step: int | None


class DryRunResult(TypedDict):
    """Results of the rewards on real rows."""

    cost: float
    edges: list[float]
    error_count: int
    is_deterministic: bool
    latency: Latency
    probes: list[ProbeResult]
    row_count: int
    warnings: list[DryRunWarning]


class DryRunWarning(TypedDict):
    """A problem in the scores that will hurt training."""

    code: str
    message: Text
    probe: NotRequired[Probe | None]


class EarlyStop(TypedDict):
    """End the training when a score no longer rises."""

    label: str
    metric: NotRequired[str | None]
    min_delta: float
    mode: Literal["max", "min"]
    patience: int


class EarlyStopped(TypedDict):
    """The score that ended a training."""

    best: float
    best_step: int
    count: int
    label: str
    last_step: int
    metric: str
    reason: Text


class EndpointLoad(TypedDict):
    """An engine's load, over the last `window_s` seconds where it is over a time."""

    first_token_mean_s: float | None
    first_token_p95_s: float | None
    generated_tokens_per_s: float
    kv_use: float
    measured_at: str
    prompt_tokens_per_s: float
    requests: int
    running: int
    waiting: int
    window_s: float


class EndpointRead(TypedDict):
    """An endpoint and its state."""

    attempt: int
    can_start: bool
    can_stop: bool
    created_at: str
    failure: Failure | None
    id: str
    idle_timeout_s: float
    job: NamedReference | None
    kind: Literal["model", "checkpoint"]
    last_used_at: str | None
    load: EndpointLoad | None
    max_model_len: int | None
    model: NamedReference | None
    name: str
    phase: str | None
    preempted_by: NamedReference | None
    preemptible: bool
    queue_position: int | None
    requests: EndpointRequests
    run_id: str
    shares_engine_of: NamedReference | None
    sharing_refusal: SharingRefusal | None
    slots: int
    state: EndpointState
    state_since: str
    step: int | None
    stopped_by: Literal["idle", "request", "training", "endpoint", "replaced"] | None
    stops_at: str | None


class EndpointRequests(TypedDict):
    """How requests to an endpoint ended, also as `trellis_endpoint_requests` in `/metrics`."""

    answered: int
    broken_off: int
    lost: int
    not_ready: int
    refused: int
    since: str
    stopped: int
    timed_out: int


class EngineSettings(TypedDict):
    """The vLLM engine of an evaluation."""

    dtype: Literal["auto", "float32", "bfloat16", "float16"]
    gpu_memory: float
    max_model_len: NotRequired[int | None]
    tensor_parallel: int


class EnvironmentDataset(TypedDict):
    """Rows of an environment, as a dataset of the platform."""

    dataset: NamedReference
    name: str
    splits: dict[str, int]


class EnvironmentRead(TypedDict):
    """An environment."""

    attempt: int
    can_call: bool
    can_delete: bool
    can_retry: bool
    cause: str | None
    counts: dict[str, int]
    created_at: str
    datasets: list[EnvironmentDataset]
    finished_at: str | None
    id: str
    kind: str
    name: str
    parameters: dict[str, Any]
    phase: Literal["files", "rows"] | None
    reason: str | None
    sha256: str | None
    size_bytes: int
    started_at: str | None
    state: EnvironmentState
    tools: list[ToolSchema]
    used_by: list[str]


class EvaluateRead(TypedDict):
    """The request, and whether it stopped the training early."""

    at_end: bool
    benchmarks: list[Gsm8kOrder | MathOrder | HumanEvalOrder | MmluOrder | CustomOrder | HarnessOrder]
    best_by: NotRequired[BestByBenchmark | None]
    early_stop: NotRequired[EarlyStop | None]
    engine: NotRequired[EngineSettings]
    every_minutes: NotRequired[float | None]
    every_steps: NotRequired[int | None]
    seed: int
    skipped: int
    stopped: EarlyStopped | None


class EvaluateWhileTraining(TypedDict):
    """Benchmarks for evaluating a training job's checkpoints."""

    at_end: bool
    benchmarks: list[Gsm8kOrder | MathOrder | HumanEvalOrder | MmluOrder | CustomOrder | HarnessOrder]
    best_by: NotRequired[BestByBenchmark | None]
    early_stop: NotRequired[EarlyStop | None]
    engine: NotRequired[EngineSettings]
    every_minutes: NotRequired[float | None]
    every_steps: NotRequired[int | None]
    seed: int


class EvaluatedPair(TypedDict):
    """A job's newest evaluation on a benchmark compared with the baseline's."""

    baseline: EvaluationReference
    comparison: ComparedBenchmark
    evaluation: EvaluationReference
    p_adjusted: float | None


class EvaluationEstimate(TypedDict):
    """Estimate for the whole plan."""

    judge_cost: float
    output_tokens: int | None
    samples: int | None
    seconds: float | None
    targets: list[TargetEstimate]
    to_install: list[str]


class EvaluationRead(TypedDict):
    """An evaluation."""

    attempt: int
    benchmarks: list[Gsm8kOrder | MathOrder | HumanEvalOrder | MmluOrder | CustomOrder | HarnessOrder]
    can_cancel: bool
    can_delete: bool
    can_retry: bool
    created_at: str
    datasets: dict[str, MeasuredDataset]
    engine: EngineSettings
    eta_s: float | None
    failure: Failure | None
    finished_at: str | None
    id: str
    is_displaced: NotRequired[bool]
    job_id: str
    last_event_id: int
    name: str
    partial: dict[str, dict[str, float | None]]
    pending_benchmarks: list[str]
    preempted: bool
    priority: int
    progress: Progress
    queue_position: int | None
    queued_at: str
    results: list[BenchmarkResult] | None
    seed: int
    started_at: str | None
    state: JobState
    target: EvaluationTarget
    trigger: Literal["person", "training"]
    waits_for: NotRequired[list[str]]


class EvaluationReference(TypedDict):
    """An evaluation of a job's checkpoint or of a model that was exported from it."""

    id: str
    name: str
    step: int | None


class EvaluationTarget(TypedDict):
    """The target. Names are null if it was deleted."""

    job: NamedReference | None
    kind: Literal["model", "checkpoint"]
    model: NamedReference | None
    name: str
    step: int | None


class ExactScorer(TypedDict):
    """The answer equals the reference, ignoring white space."""

    ignore_case: bool
    kind: Literal["exact"]


class Example(TypedDict):
    """A row before and after a step."""

    after: NotRequired[dict[str, Any] | None]
    before: dict[str, Any]
    kind: Literal["changed", "dropped"]
    position: int
    reason: NotRequired[str | None]


class ExportAs(TypedDict):
    """A model to make of the checkpoint when the job has succeeded."""

    best_by: NotRequired[str | None]
    mode: NotRequired[Literal["max", "min"] | None]
    name: str


class ExportAsRead(TypedDict):
    """The request and its result."""

    best_by: NotRequired[str | None]
    job: NotRequired[NamedReference | None]
    mode: NotRequired[Literal["max", "min"] | None]
    name: str
    problem: NotRequired[str | None]


class ExportRead(TypedDict):
    """What an export job writes."""

    form: Literal["merged", "adapter"]
    name: str
    source: NamedReference
    step: int


class ExportSource(TypedDict):
    """Written by an export job; use ``POST /jobs/{id}/checkpoints/{step}/export`` instead."""

    form: Literal["merged", "adapter"]
    job_id: str
    kind: Literal["export"]
    step: int


class Failure(TypedDict):
    """Why a job did not succeed."""

    cause: str | None
    changes: list[ParameterChange]
    exit_code: int | None
    hint: Text | None
    last_lines: list[str]
    reason: str
    resume_helps: bool


class FetchProgress(TypedDict):
    """Progress of a model download."""

    done_bytes: NotRequired[int | None]
    stage: FetchStage
    total_bytes: NotRequired[int | None]


class FoundRows(TypedDict):
    """Rows that fit. A call looks for about a second; ``next_cursor`` says where the next one goes on."""

    columns: list[ColumnRead]
    cut: list[CutValue]
    looked_at: int
    next_cursor: int | None
    positions: list[int]
    row_count: int
    rows: list[dict[str, Any]]
    split: str
    version: str


class FunnelBarRead(TypedDict):
    """Rows left after a step; the first bar, without a step, is the input."""

    rows: int
    step: str | None


class GateResult(TypedDict):
    """Result of the gate."""

    against: float
    against_evaluation: str
    benchmark: str
    difference: float
    evaluation: str
    metric: str
    p_value: float | None
    pairs: int
    value: float


class GroupDifference(TypedDict):
    """A group compared with the baseline's."""

    difference: float
    group: int
    high: float | None
    low: float | None
    p_adjusted: float | None
    p_value: float | None
    verdict: Literal["better", "worse", "different", "unclear", "too_few_seeds", "no_spread"]


class GroupScore(TypedDict):
    """The headline metric over some of the problems."""

    kind: str
    name: str
    score: Score


class Gsm8kOrder(TypedDict):
    """Grade-school mathematics with chain of thought (Cobbe et al. 2021)."""

    benchmark: Literal["gsm8k"]
    chat: Literal["auto", "always", "never"]
    decoding: NotRequired[Decoding]
    label: NotRequired[str | None]
    limit: NotRequired[int | None]
    shots: NotRequired[int | None]
    system: NotRequired[str | None]


class HarnessOrder(TypedDict):
    """A task of lm-evaluation-harness, by its name."""

    benchmark: Literal["harness"]
    chat: Literal["auto", "always", "never"]
    decoding: NotRequired[Decoding]
    label: NotRequired[str | None]
    limit: NotRequired[int | None]
    shots: NotRequired[int | None]
    system: NotRequired[str | None]
    task: str


class HeadlineMetric(TypedDict):
    """Summary of one metric of a job."""

    best: float | None
    best_step: int | None
    key: str
    last: float | None
    last_step: int
    mode: Literal["max", "min"] | None


class Histogram(TypedDict):
    """How many values lie between edges; one on an edge counts above it, at the last edge below."""

    counts: list[int]
    edges: list[float]
    kind: Literal["histogram"]


class HubSource_Output(TypedDict):
    """A repository of a model hub; fetched by a worker."""

    file: NotRequired[str | None]
    hub: Literal["huggingface", "modelscope"]
    kind: Literal["hub"]
    licence: NotRequired[str | None]
    repo_id: str
    revision: str


class HumanEvalOrder(TypedDict):
    """Python functions from their descriptions, run against tests (Chen et al. 2021)."""

    benchmark: Literal["humaneval"]
    chat: Literal["auto", "always", "never"]
    decoding: NotRequired[Decoding]
    k: NotRequired[list[int]]
    label: NotRequired[str | None]
    limit: NotRequired[int | None]
    memory_mb: int
    samples: int
    shots: NotRequired[int | None]
    system: NotRequired[str | None]
    timeout_s: float


class Importance(TypedDict):
    """Importance of all parameters."""

    method: Literal["rank_variance"]
    min_runs: int
    parameters: list[ParameterImportance]
    run_count: int


class Issue(TypedDict):
    """One error or warning; ``field`` is a path into the request (``params.group_size``)."""

    code: str
    field: str
    message: str
    suggestion: NotRequired[str | None]


class JobComparison(TypedDict):
    """Jobs side by side."""

    jobs: list[JobRead]
    metric_keys: list[MetricChoice]
    metrics: list[ComparedMetric]
    missing: list[str]
    parameters: list[ComparedParameter]
    seed_groups: list[list[str]]


class JobCreate(TypedDict):
    """A job to run."""

    columns: NotRequired[dict[str, Any]]
    data_format: NotRequired[DataFormat | None]
    dataset: str
    dataset_split: NotRequired[str | None]
    dataset_version: NotRequired[str | None]
    evaluate: NotRequired[EvaluateWhileTraining | None]
    export_as: NotRequired[ExportAs | None]
    keep_best_by: NotRequired[BestBy | None]
    model: str
    name: str
    overrides: NotRequired[dict[str, Any]]
    params: NotRequired[dict[str, Any]]
    preset: NotRequired[str | None]
    priority: int
    recipe: str
    report_to: NotRequired[ReportTo | None]
    resources: NotRequired[Resources]
    seed: int
    tags: NotRequired[list[str]]
    validation_columns: NotRequired[dict[str, Any]]
    validation_data_format: NotRequired[DataFormat | None]
    validation_dataset: NotRequired[str | None]
    validation_split: NotRequired[str | None]
    validation_version: NotRequired[str | None]


class JobPipelineRead(TypedDict):
    """A pipeline."""

    can_delete: bool
    can_start: bool
    can_stop: bool
    created_at: str
    description: str
    finished_at: str | None
    id: str
    name: str
    stages: list[StageRead]
    started_at: str | None
    state: PipelineState


class JobPreview(TypedDict):
    """What a launch would run, built by the same code."""

    command: str
    config: dict[str, Any]
    data: DataFit | None
    derived: list[str]
    engine: str
    engine_overrides: list[str]
    env: dict[str, str]
    errors: list[Issue]
    forecast: RunForecast | None
    memory: MemoryEstimate | None
    params: dict[str, Any]
    rewards: list[RewardTerm]
    validation_data: DataFit | None
    warnings: list[Issue]


class JobRead(TypedDict):
    """A job."""

    alarm_count: int
    alarms: list[AlarmRead]
    attempt: int
    can_clone: bool
    can_delete: bool
    can_resume: bool
    can_stop: bool
    cloned_from: str | None
    columns: dict[str, str]
    cost: Cost | None
    created_at: str
    data_format: DataFormat | None
    dataset: NamedReference | None
    dataset_split: str | None
    dataset_version: str | None
    earlier_run_time_s: float
    eta_s: float | None
    evaluate: EvaluateRead | None
    evaluation_id: str | None
    export: ExportRead | None
    export_as: ExportAsRead | None
    exported_model: NamedReference | None
    failure: Failure | None
    field_modes: dict[str, Literal["max", "min"]]
    fields: dict[str, int | float | bool | str | None]
    finished_at: str | None
    group: str | None
    headline_metrics: list[str]
    id: str
    is_starred: bool
    keep_best_by: BestBy | None
    kind: Literal["train", "export", "evaluate", "serve"]
    last_event_id: int
    launched_at: str | None
    metric: HeadlineMetric | None
    model: NamedReference
    name: str
    notes: str | None
    overrides: dict[str, Any]
    params: dict[str, Any]
    preset: str | None
    priority: int
    progress: Progress
    queue_position: int | None
    queued_at: str
    recipe: str
    report_to: JobReportRead | None
    resources: trellis_api__jobs__schemas__ResourcesRead
    resume_step: int | None
    resumes: list[Resume]
    seed: int
    started_at: str | None
    state: JobState
    stop_requested_at: str | None
    sweep: NamedReference | None
    tags: list[str]
    validation_columns: dict[str, str]
    validation_data_format: DataFormat | None
    validation_dataset: NamedReference | None
    validation_split: str | None
    validation_version: str | None
    worst_alarm: Literal["warning", "critical"] | None


class JobReportRead(TypedDict):
    """Where the metrics go, and how far they are."""

    problem: str | None
    sent_step: int | None
    url: str | None
    wandb: WandbSettings


class JsonScorer(TypedDict):
    """The answer is JSON: it matches a schema, equals the reference, or both."""

    equals_answer: bool
    kind: Literal["json"]
    schema_text: NotRequired[str | None]


class JudgeScorer(TypedDict):
    """A model behind an endpoint of the platform's settings judges the answer."""

    form: Literal["rubric", "pairwise"]
    human_column: NotRequired[str | None]
    judge: str
    kind: Literal["judge"]
    max_cost: float
    rubric: str
    threshold: float


class Latency(TypedDict):
    """Duration of scoring one response."""

    max_ms: float
    p50_ms: float
    p95_ms: float


class Lengths(TypedDict):
    """Of how many texts or rows, how long they are, and the distribution."""

    count: int
    histogram: NotRequired[Histogram]
    least: int
    most: int
    total: int


class Lineage(TypedDict):
    """Where the weights come from; nulls for imported weights."""

    ancestors: NotRequired[list[Training]]
    dataset_id: NotRequired[str | None]
    dataset_name: NotRequired[str | None]
    dataset_sha256: NotRequired[str | None]
    dataset_split: NotRequired[str | None]
    dataset_version: NotRequired[str | None]
    environment_id: NotRequired[str | None]
    environment_name: NotRequired[str | None]
    environment_sha256: NotRequired[str | None]
    export_job_id: NotRequired[str | None]
    form: NotRequired[Literal["merged", "adapter"] | None]
    job_id: NotRequired[str | None]
    job_name: NotRequired[str | None]
    model_id: NotRequired[str | None]
    model_name: NotRequired[str | None]
    recipe: NotRequired[str | None]
    step: NotRequired[int | None]


class LineageEdge(TypedDict):
    """An edge of the lineage."""

    role: Literal["base", "data", "environment", "checkpoint", "measured", "report"]
    source: str
    step: NotRequired[int | None]
    target: str


class LineageNode(TypedDict):
    """A model, job, dataset, environment, evaluation or report in a lineage."""

    exists: bool
    form: NotRequired[Literal["merged", "adapter"] | None]
    id: str
    kind: Literal["model", "job", "dataset", "environment", "evaluation", "report"]
    name: str | None
    recipe: NotRequired[str | None]
    sha256: NotRequired[str | None]
    state: NotRequired[str | None]


class LineageRead(TypedDict):
    """All ancestors and descendants of a model."""

    edges: list[LineageEdge]
    is_cut: bool
    model_id: str
    nodes: list[LineageNode]


class LocalSource(TypedDict):
    """A folder in the data root, used in place; or a GGUF file, which a worker converts."""

    kind: Literal["local"]
    licence: NotRequired[str | None]
    path: str


class LogLineRead(TypedDict):
    """One line of output."""

    attempt: int
    line: int
    stream: Literal["stdout", "stderr", "platform"]
    text: str
    time: str


class LogsPrinted(TypedDict):
    """New lines of output."""

    lines: list[LogLineRead]


class ManifestRead(TypedDict):
    """Everything needed to reproduce an attempt."""

    attempt: int
    manifest: dict[str, Any]


class ManifestWritten(TypedDict):
    """The manifest of an attempt can be read."""

    attempt: int


class MapCell(TypedDict):
    """The responses to a prompt in one column."""

    column: int
    count: int
    is_uniform: bool
    mean: float | None
    step: int
    tokens: int


class MapColumn(TypedDict):
    """One column of the map of prompts: a step, or several next to each other in a long run."""

    from_step: int
    to_step: int


class MapRow(TypedDict):
    """One prompt over all steps."""

    cells: list[MapCell]
    excerpt: str
    mean: float | None
    prompt_key: str
    steps: int


class MathOrder(TypedDict):
    """Competition mathematics (Hendrycks et al. 2021), whole or the 500 of Lightman et al. (2023)."""

    benchmark: Literal["math", "math500"]
    chat: Literal["auto", "always", "never"]
    decoding: NotRequired[Decoding]
    label: NotRequired[str | None]
    levels: NotRequired[list[int] | None]
    limit: NotRequired[int | None]
    shots: NotRequired[int | None]
    system: NotRequired[str | None]
    types: NotRequired[list[str] | None]


class MathScorer(TypedDict):
    """The answer equals the reference as an expression (math-verify)."""

    kind: Literal["math"]


class MeasuredDataset(TypedDict):
    """The dataset of the platform that a benchmark measures on."""

    id: str
    is_deleted: bool
    name: str | None
    version: str | None


class MemoryEstimate(TypedDict):
    """What a run is expected to need. It refuses nothing."""

    assumptions: list[Text]
    available_bytes: int | None
    parameters: int
    peak_bytes: int
    peak_phase: str
    per_gpu_bytes: int
    phases: list[MemoryPhase]
    warnings: list[Text]


class MemoryPart(TypedDict):
    """One thing that lies in memory during a phase."""

    bytes: int
    how: Text
    name: str
    title: Text


class MemoryPhase(TypedDict):
    """What is in memory at the same time."""

    name: str
    parts: list[MemoryPart]
    title: Text
    total_bytes: int


class MetricChoice(TypedDict):
    """A metric that can be compared."""

    key: str
    run_count: int


class MetricKey(TypedDict):
    """A metric that the job has reported, under the engine's own name."""

    key: str
    last_step: int
    last_value: float | None


class MetricSeries(TypedDict):
    """One curve. `steps` and `values` run in parallel."""

    is_downsampled: bool
    key: str
    non_finite: list[NonFinitePoint]
    steps: list[int]
    stretch_steps: int
    total_points: int
    values: list[float | None]


class MetricsRead(TypedDict):
    """Metric curves of a job."""

    clock: NotRequired[StepClock | None]
    last_event_id: int
    series: list[MetricSeries]


class MetricsReported(TypedDict):
    """The metrics of one step."""

    non_finite: NotRequired[dict[str, Literal["nan", "inf", "-inf"]]]
    step: int
    values: dict[str, float | None]


class MissingRole(TypedDict):
    """A role without a column."""

    looked_for: list[str]
    reason: Text
    role: str


class MmluOrder(TypedDict):
    """Multiple choice over many subjects (Hendrycks et al. 2020)."""

    benchmark: Literal["mmlu"]
    chat: Literal["auto", "always", "never"]
    decoding: NotRequired[Decoding]
    label: NotRequired[str | None]
    limit: NotRequired[int | None]
    mode: Literal["loglikelihood", "generate"]
    shots: NotRequired[int | None]
    subjects: NotRequired[list[str] | None]
    system: NotRequired[str | None]


class ModelRead(TypedDict):
    """A registered model. Facts about the weights are null until they are downloaded."""

    architecture: str | None
    context_length: int | None
    created_at: str
    description: str
    dtype: str | None
    has_chat_template: bool | None
    id: str
    lineage: Lineage
    name: str
    parameter_count: int | None
    path: str | None
    progress: FetchProgress | None
    revision: str | None
    sha256: str | None
    sha256_kind: Literal["content", "sampled"] | None
    size_bytes: int | None
    source: (
        CatalogueSource
        | LocalSource
        | HubSource_Output
        | trellis_api__models__schemas__CheckpointSource
        | ExportSource
    )
    state: ModelState
    state_cause: ModelCause | None
    state_reason: str | None
    vocabulary_size: int | None
    warnings: list[ModelWarning]


class ModelTarget(TypedDict):
    """A registered model."""

    kind: Literal["model"]
    model: str


class ModelWarning(TypedDict):
    """A limitation of the model."""

    code: str
    message: str


class NamedModelRead(TypedDict):
    """A name with its versions, newest first."""

    aliases: dict[str, int]
    created_at: str
    name: str
    versions: list[NamedVersionRead]


class NamedReference(TypedDict):
    """Another thing, by id and name."""

    id: str
    name: str | None


class NamedVersionRead(TypedDict):
    """A version."""

    aliases: list[str]
    created_at: str
    exists: bool
    model: str
    model_name: str
    note: str
    number: int


class NonFinitePoint(TypedDict):
    """A value that is no finite number."""

    step: int
    value: Literal["nan", "inf", "-inf"]


class NumericScorer(TypedDict):
    """The answer's last number is the reference's, within a tolerance."""

    kind: Literal["numeric"]
    tolerance: float


class Objective(TypedDict):
    """The metric by which runs are compared."""

    metric: NotRequired[str | None]
    mode: NotRequired[Literal["max", "min"] | None]
    take: NotRequired[Literal["last", "best"] | None]


class OverlapScorer(TypedDict):
    """BLEU (sacrebleu, sentence level) or ROUGE-1/2/L (rouge-score) with the reference, 0 to 1."""

    kind: Literal["bleu", "rouge1", "rouge2", "rougeL"]
    threshold: float


class Paper(TypedDict):
    """The publication that a recipe follows."""

    arxiv: NotRequired[str | None]
    title: str
    year: int


class Parameter(TypedDict):
    """One parameter of a recipe."""

    advanced: bool
    auto: NotRequired[Literal["batch", "half_batch", "passes"] | None]
    can_be_empty: bool
    choices: NotRequired[list[str]]
    default: int | float | bool | str | None
    engine_keys: NotRequired[list[str]]
    exclusive_minimum: NotRequired[float | None]
    group: Literal[
        "data", "model", "optimisation", "algorithm", "critic", "rollout", "reward", "agent", "run"
    ]
    help: Text
    maximum: NotRequired[float | None]
    minimum: NotRequired[float | None]
    name: str
    title: Text
    type: Literal["int", "float", "bool", "str", "choice", "rewards", "environment", "workflow"]
    unit: NotRequired[str | None]


class ParameterChange(TypedDict):
    """A parameter's value in a job, and the one to try instead."""

    current: int | float | bool | str | None
    parameter: str
    suggested: int | float | bool | str
    title: Text


class ParameterImportance(TypedDict):
    """Importance of a parameter for the objective."""

    correlation: float | None
    importance: float
    p_value: float
    parameter: str


class PhaseColumn(TypedDict):
    """One phase of the steps, over all of them."""

    group: str
    in_step: bool
    phase: str
    seconds: list[float]
    share: float
    total_s: float


class Pipeline(TypedDict):
    """Steps applied to rows, in order."""

    columns: NotRequired[dict[str, str]]
    description: str
    format: NotRequired[DataFormat | None]
    name: str
    seed: int
    steps: list[Step]
    tokenizer: NotRequired[str | None]


class PipelineChecked(TypedDict):
    """Problems of a pipeline; ``pipeline`` and ``yaml`` are null if it cannot be parsed."""

    hash: str | None
    pipeline: Pipeline | None
    problems: list[PipelineProblemRead]
    yaml: str | None


class PipelineProblemRead(TypedDict):
    """A problem in a pipeline."""

    code: str
    field: str
    message: str
    step: str | None


class PipelineRead(TypedDict):
    """A saved pipeline."""

    created_at: str
    description: str
    hash: str
    id: str
    message: str
    name: str
    pipeline: Pipeline
    updated_at: str
    version: int
    yaml: str


class Preset(TypedDict):
    """Parameter values and engine overrides that suit one size of machine."""

    gpus: int
    id: Literal["cpu-tiny", "cpu-small", "gpu-24gb", "gpu-80gb", "gpu-8x80gb", "development", "production"]
    overrides: NotRequired[dict[str, Any]]
    params: NotRequired[dict[str, Any]]
    title: Text


class ProbeResult(TypedDict):
    """The scores of one probe over all sampled rows."""

    changed_rows: list[int]
    correct_share: float
    count: int
    error_count: int
    errors: list[ScoringError]
    examples: list[ScoredExample]
    histogram: list[int]
    is_deterministic: bool
    latency: Latency
    maximum: float
    mean: float
    minimum: float
    probe: Probe
    term_means: dict[str, float]
    title: Text


class ProbesRead(TypedDict):
    """How tricks are scored by the rewards of a run while it trains."""

    left_out: list[str]
    reason: Literal["own_reward", "nothing_to_earn", "unbounded"] | None
    scored: list[str]


class Progress(TypedDict):
    """Progress of a job."""

    fraction: float | None
    phase: str | None
    step: int
    total_steps: int | None


class ProgressMade(TypedDict):
    """Progress of the run."""

    eta_s: float | None
    phase: str | None
    step: int
    total_steps: int | None


class PromotionRead(TypedDict):
    """A promotion or rollback."""

    alias: str
    created_at: str
    from_version: int | None
    gate: GateResult | None
    id: int
    kind: Literal["promote", "rollback"]
    note: str
    to_version: int


class PromptMap(TypedDict):
    """Mean scores by prompt and step: the prompts that were sampled most often, hardest first."""

    columns: list[MapColumn]
    prompt_count: int
    rows: list[MapRow]
    split: Literal["train", "validation", "probe"]
    totals: RolloutGroupTotals


class QuarantineRead(TypedDict):
    """A page of rows rejected by imports."""

    offset: int
    reasons: dict[str, int]
    row_count: int
    rows: list[QuarantinedRow]


class QuarantinedRow(TypedDict):
    """A rejected row."""

    code: str
    column: str | None
    line: int | None
    raw: str | None
    reason: str
    row: int | None
    source: str


class Recipe(TypedDict):
    """One algorithm that can be launched from the form, the API or the CLI."""

    agent: NotRequired[str | None]
    data_formats: list[DataFormat]
    description: Text
    engine: Engine
    family: Literal["supervised", "rl", "preference", "agent"]
    fixed: NotRequired[dict[str, Any]]
    headline_metrics: list[str]
    id: str
    is_experimental: bool
    knobs: NotRequired[list[Parameter]]
    paper: NotRequired[Paper | None]
    parameters: list[Parameter]
    presets: list[Preset]
    row_format: DataFormat
    sampled_from: NotRequired[DataFormat | None]
    title: Text
    trains_on: NotRequired[DataFormat]


class RecipeRead(TypedDict):
    """A recipe with the schema of its parameters."""

    agent: NotRequired[str | None]
    data_formats: list[DataFormat]
    description: Text
    engine: Engine
    family: Literal["supervised", "rl", "preference", "agent"]
    fixed: NotRequired[dict[str, Any]]
    headline_metrics: list[str]
    id: str
    is_experimental: bool
    knobs: NotRequired[list[Parameter]]
    paper: NotRequired[Paper | None]
    parameters: list[Parameter]
    params_schema: dict[str, Any]
    presets: list[Preset]
    row_format: DataFormat
    sampled_from: NotRequired[DataFormat | None]
    title: Text
    trains_on: NotRequired[DataFormat]


class RefRead(TypedDict):
    """A branch or a tag."""

    moved_at: str
    name: str
    version: str


class RefsRead(TypedDict):
    """All names of versions of a dataset."""

    branches: list[RefRead]
    tags: list[RefRead]


class RegexScorer(TypedDict):
    """The last match of the pattern (its first group, if it has one) is the reference."""

    kind: Literal["regex"]
    pattern: str


class ReplayDifference(TypedDict):
    """What is different from the run of the manifest."""

    name: str
    now: str | None
    was: str | None
    what: Literal[
        "model",
        "data",
        "validation_data",
        "parameter",
        "setting",
        "reward",
        "engine",
        "package",
        "code",
        "hardware",
        "start",
    ]


class ReplayPlan(TypedDict):
    """What would be launched, and what differs from the run of the manifest."""

    differences: list[ReplayDifference]
    problems: list[Issue]
    request: JobCreate | None
    warnings: list[Issue]


class ReportFile(TypedDict):
    """One file of a report."""

    format: Literal["md", "html", "pdf"]
    size_bytes: int


class ReportProblem(TypedDict):
    """A format that could not be created; the others are available."""

    code: str
    format: Literal["md", "html", "pdf"]
    message: str


class ReportRead(TypedDict):
    """A report."""

    can_retry: bool
    created_at: str
    evaluations: list[NamedReference]
    files: list[ReportFile]
    formats: list[Literal["md", "html", "pdf"]]
    id: str
    language: Literal["en", "zh"]
    name: str
    problems: list[ReportProblem]
    samples: int
    state: ReportState
    state_reason: str | None


class ReportTo(TypedDict):
    """A service that receives the job's metrics too."""

    wandb: WandbSettings


class Resources(TypedDict):
    """Resources of a job while it runs."""

    gpus: int


class Resume(TypedDict):
    """Where the curves of a job change over to another attempt."""

    attempt: int
    step: int


class RewardFileRead(TypedDict):
    """An uploaded file, without its code."""

    created_at: str
    id: str
    name: str
    sha256: str
    size_bytes: int


class RewardKindRead(TypedDict):
    """A reward with the schema of its options."""

    answer_part: NotRequired[str | None]
    help: Text
    highest: float | None
    lowest: float | None
    name: str
    needs_answer: bool
    options: NotRequired[list[RewardOption]]
    params_schema: dict[str, Any]
    runs_code: bool
    title: Text
    unavailable: NotRequired[Text | None]
    waits: bool


class RewardOption(TypedDict):
    """One option of a reward."""

    advanced: bool
    auto: NotRequired[Literal["batch", "half_batch", "passes"] | None]
    can_be_empty: bool
    choices: NotRequired[list[str]]
    default: int | float | bool | str | None
    engine_keys: NotRequired[list[str]]
    exclusive_minimum: NotRequired[float | None]
    group: Literal[
        "data", "model", "optimisation", "algorithm", "critic", "rollout", "reward", "agent", "run"
    ]
    help: Text
    is_multiline: bool
    is_required: bool
    maximum: NotRequired[float | None]
    minimum: NotRequired[float | None]
    name: str
    source: NotRequired[Literal["reward-files", "models", "judges"] | None]
    title: Text
    type: Literal["int", "float", "bool", "str", "choice", "rewards", "environment", "workflow"]
    unit: NotRequired[str | None]


class RewardTerm(TypedDict):
    """One reward of a mixture. The first term of a mixture decides whether a response is correct."""

    name: str
    options: NotRequired[dict[str, Any]]
    weight: float


class RolloutGroupTotals(TypedDict):
    """Prompts with several sampled responses, and those of which all scored the same."""

    all_correct: int | None
    all_wrong: int | None
    groups: int
    tokens: int
    uniform: int
    uniform_tokens: int


class RolloutRead(TypedDict):
    """One sampled response."""

    advantage: float | None
    ground_truth: str | None
    group: str
    id: int
    is_truncated: bool
    number: int
    prompt: str
    response: str
    response_tokens: int
    reward_parts: dict[str, float | None]
    score: float | None
    split: Literal["train", "validation", "probe"]
    step: int
    stop_reason: str | None
    trajectory: Trajectory | None
    turn_count: int | None


class RolloutStep(TypedDict):
    """A step of which responses were kept."""

    count: int
    mean_score: float | None
    split: Literal["train", "validation", "probe"]
    step: int


class RolloutSummary(TypedDict):
    """All sampled responses of one step in numbers."""

    groups: RolloutGroupTotals
    probes: ProbesRead | None
    reward_parts: list[str]
    scores: list[float]
    split: Literal["train", "validation", "probe"]
    step: int
    stop_reasons: dict[str, int]
    total: int


class RolloutsSampled(TypedDict):
    """Responses of a step can be read."""

    count: int
    split: Literal["train", "validation", "probe"]
    step: int


class RunCurves(TypedDict):
    """Curves of one job."""

    clock: NotRequired[StepClock | None]
    job_id: str
    series: list[MetricSeries]


class RunEvaluations(TypedDict):
    """A job's evaluations compared with the baseline's."""

    benchmarks: list[EvaluatedPair]
    job_id: str


class RunForecast(TypedDict):
    """Estimates before a launch."""

    disk: DiskForecast | None
    start: StartForecast
    steps: int | None
    time: TimeForecast | None


class RunRead(TypedDict):
    """A run of a pipeline."""

    output: dict[str, Any]
    pipeline: Pipeline
    pipeline_id: str | None
    pipeline_version: int | None
    report: RunReportRead | None
    splits: list[str] | None
    task: DataTaskRead


class RunReportRead(TypedDict):
    """The report of a run."""

    funnel: list[FunnelBarRead]
    outputs: dict[str, int]
    peak_memory_bytes: int
    rows_in: int
    rows_out: int
    seconds: float
    steps: list[RunStepRead]


class RunStepRead(TypedDict):
    """Result of a step, and which details are available."""

    changed: int
    counts: NotRequired[dict[str, int]]
    dropped: int
    examples: NotRequired[list[Example]]
    findings: NotRequired[dict[str, Any]]
    has_clusters: bool
    has_dropped: bool
    kept: int
    name: str
    operator: str
    reasons: NotRequired[dict[str, int]]
    rows_in: int
    seconds: float


class Sample(TypedDict):
    """One generation, as it is kept and shown."""

    error: NotRequired[str | None]
    extracted: NotRequired[str | None]
    finish_reason: NotRequired[str | None]
    gold: str
    groups: NotRequired[dict[str, str]]
    key: str
    notes: NotRequired[dict[str, str]]
    number: int
    output: str
    output_tokens: int
    parts: NotRequired[dict[str, float]]
    position: int
    prompt: str
    prompt_tokens: int
    score: float
    seconds: float
    verdict: Verdict


class SampleRead(TypedDict):
    """One sample, and the same problem's in another evaluation."""

    against: Sample | None
    sample: Sample


class Score(TypedDict):
    """A measured number with its uncertainty."""

    high: NotRequired[float | None]
    low: NotRequired[float | None]
    method: Literal["wilson", "bootstrap", "normal", "none"]
    metric: str
    n: int
    stderr: NotRequired[float | None]
    value: float


class ScoredExample(TypedDict):
    """A response and its reward."""

    answer: str
    parts: dict[str, float]
    prompt: str
    response: str
    row: int
    score: float


class ScoringError(TypedDict):
    """A response on which a reward failed; it scores 0 there."""

    message: str
    row: int
    term: str


class Search(TypedDict):
    """How runs are chosen."""

    method: Literal["grid", "random", "bayesian", "asha"]
    seed: int


class SeedGroup(TypedDict):
    """Jobs that differ only in the seed, or one trial of a sweep."""

    deviation: float | None
    failed: list[str]
    job_ids: list[str]
    left_out: list[str]
    mean: float | None
    name: str
    seed_count: int
    values: list[SeedValue]


class SeedValue(TypedDict):
    """The metric in one job."""

    job_id: str
    seed: int
    value: float


class SharingRefusal(TypedDict):
    """Why an adapter isn't served by its base model's engine."""

    reason: str
    retry_at: str


class StageCreate(TypedDict):
    """One stage: a training as a launch would take it, or an evaluation."""

    benchmarks: NotRequired[
        list[Gsm8kOrder | MathOrder | HumanEvalOrder | MmluOrder | CustomOrder | HarnessOrder] | None
    ]
    best_by: NotRequired[str | None]
    columns: NotRequired[dict[str, Any]]
    data_format: NotRequired[DataFormat | None]
    dataset: NotRequired[str | None]
    dataset_split: NotRequired[str | None]
    dataset_version: NotRequired[str | None]
    engine: NotRequired[EngineSettings]
    exports: bool
    id: str
    kind: Literal["train", "evaluate"]
    mode: NotRequired[Literal["max", "min"] | None]
    model: StageModel
    needs: NotRequired[list[str]]
    overrides: NotRequired[dict[str, Any]]
    params: NotRequired[dict[str, Any]]
    preset: NotRequired[str | None]
    priority: int
    recipe: NotRequired[str | None]
    report_to: NotRequired[ReportTo | None]
    resources: NotRequired[Resources]
    seed: int
    title: NotRequired[str | None]
    validation_columns: NotRequired[dict[str, Any]]
    validation_data_format: NotRequired[DataFormat | None]
    validation_dataset: NotRequired[str | None]
    validation_split: NotRequired[str | None]
    validation_version: NotRequired[str | None]


class StageJob(TypedDict):
    """The job that carries a stage out."""

    eta_s: float | None
    id: str
    name: str | None
    progress: Progress | None
    state: JobState | None


class StageModel(TypedDict):
    """The model that a stage starts from: a registered one, or the output of another stage."""

    base: NotRequired[str | None]
    stage: NotRequired[str | None]


class StageRead(TypedDict):
    """A stage."""

    can_rerun: bool
    cause: str | None
    evaluation_id: str | None
    export_job: StageJob | None
    fingerprint: str | None
    finished_at: str | None
    hint: Text | None
    id: str
    job: StageJob | None
    kind: Literal["train", "evaluate"]
    model: NamedReference | None
    needs: list[str]
    reason: str | None
    recipe: str | None
    request: StageCreate
    reused_from: NamedReference | None
    started_at: str | None
    state: StageState
    title: str


class StartForecast(TypedDict):
    """Estimated start of a launch."""

    jobs_ahead: int
    seconds: float | None
    unknown: NotRequired[str | None]


class StateChanged(TypedDict):
    """The job is in another state, or in the same state for another reason: read it again for the actions."""

    attempt: int
    reason: NotRequired[str | None]
    state: JobState


class Statistics(TypedDict):
    """Some rows in numbers."""

    characters: NotRequired[Lengths]
    columns: NotRequired[list[ColumnStatistics]]
    duplicates: NotRequired[int | None]
    format: DataFormat
    languages: NotRequired[dict[str, int]]
    roles: NotRequired[dict[str, int]]
    rows: int
    splits: NotRequired[dict[str, int]]
    tokens: NotRequired[Lengths | None]
    turns: NotRequired[Lengths]


class StatisticsRead(TypedDict):
    """Statistics of a version. Without a model there are no lengths in tokens."""

    model: str | None
    statistics: Statistics | None
    task: DataTaskRead | None
    version: str


class Step(TypedDict):
    """One operator and its parameters."""

    name: NotRequired[str | None]
    operator: str
    params: NotRequired[dict[str, Any]]


class StepClock(TypedDict):
    """Time and tokens up to steps of a job, and when the steps ended. Columns run in parallel, over every…"""

    at: list[str | None] | None
    elapsed_s: list[float | None] | None
    steps: list[int]
    tokens: list[float | None] | None


class StopRule(TypedDict):
    """Stop runs that are worse than others at the same step."""

    factor: int
    min_runs: int
    min_steps: int
    rule: Literal["asha", "median"]


class StreamEvents(TypedDict):
    """The event names of the stream, each with the type of its data. `id` is the position to resume from."""

    alarm: AlarmRead
    checkpoint: CheckpointSaved
    logs: LogsPrinted
    manifest: ManifestWritten
    metrics: MetricsReported
    progress: ProgressMade
    reset: StreamReset
    rollouts: RolloutsSampled
    state: StateChanged


class StreamReset(TypedDict):
    """The requested position does not exist: reload everything and continue from here."""

    at: str


class SweepCreate(TypedDict):
    """A training job and its search space."""

    budget: NotRequired[Budget]
    early_stop: NotRequired[StopRule | None]
    job: JobCreate
    name: str
    objective: NotRequired[Objective]
    parallel: NotRequired[int | None]
    parameters: NotRequired[dict[str, Any]]
    search: NotRequired[Search]
    seeds: NotRequired[list[int]]


class SweepIssue(TypedDict):
    """An error or warning."""

    code: str
    field: str
    message: str


class SweepPreview(TypedDict):
    """Preview of a sweep; nothing is saved."""

    errors: list[SweepIssue]
    examples: list[dict[str, Any]]
    objective: Objective
    parallel: int
    runs: int | None
    trials: int | None
    warnings: list[SweepIssue]


class SweepRead(TypedDict):
    """A sweep with its runs."""

    best: TrialRead | None
    best_run: int | None
    can_delete: bool
    can_resume: bool
    can_stop: bool
    cause: str | None
    counts: dict[str, int]
    created_at: str
    dataset: NamedReference
    elapsed_s: float
    finished_at: str | None
    id: str
    importance: Importance
    model: NamedReference
    name: str
    objective: Objective
    parallel: int
    parameters: list[str]
    planned_runs: int
    reason: str | None
    recipe: str
    request: SweepCreate
    runs: list[SweepRunRead]
    search: Search
    slot_hours: float
    state: SweepState
    trials: list[TrialRead]


class SweepRunRead(TypedDict):
    """One run of a sweep."""

    duration_s: float | None
    index: int
    job: NamedReference | None
    job_state: JobState | None
    problem: str | None
    progress: Progress | None
    prune_reason: str | None
    pruned_at: str | None
    seed: int
    state: RunState
    trial: int
    value: float | None
    value_step: int | None
    values: dict[str, Any]


class SweepSummary(TypedDict):
    """A sweep in a list."""

    best: TrialRead | None
    can_delete: bool
    can_resume: bool
    can_stop: bool
    cause: str | None
    counts: dict[str, int]
    created_at: str
    finished_at: str | None
    id: str
    name: str
    objective: Objective
    parameters: list[str]
    planned_runs: int
    reason: str | None
    recipe: str
    search: Search
    state: SweepState


class TargetEstimate(TypedDict):
    """Estimate for one target."""

    benchmarks: list[BenchmarkEstimate]
    name: str
    seconds: float | None
    target: ModelTarget | CheckpointTarget


class Text(TypedDict):
    """A sentence for users, in both languages of the product."""

    en: str
    zh: str


class TimeForecast(TypedDict):
    """Estimated duration, and what it is based on."""

    basis: Literal["similar_runs", "scaled_runs", "arithmetic"]
    cost: Cost | None
    high_s: float
    is_same_data: bool
    low_s: float
    machine_flops: NotRequired[float | None]
    rows_per_s: float
    runs: list[str]
    scaled_from_parameters: NotRequired[int | None]
    seconds: float
    slot_hours: float
    step_flops: NotRequired[float | None]
    step_s: float


class TimingRead(TypedDict):
    """Where the time of a job's steps went."""

    bottleneck: Bottleneck | None
    first_steps: list[int]
    last_steps: list[int]
    phases: list[PhaseColumn]
    step_s: list[float]
    steps: int
    timeline_steps: list[int]


class TokenTraceRead(TypedDict):
    """Some tokens of a response, and what was measured of each before the update. Lists have one entry a…"""

    advantage: list[float | None] | None
    difference: list[float | None] | None
    entropy: list[float | None] | None
    first: int
    kl: list[float | None] | None
    log_prob: list[float | None] | None
    not_finite: list[int]
    texts: list[str]


class ToolCall(TypedDict):
    """One call of a tool by the model."""

    arguments: NotRequired[dict[str, Any]]
    duration_s: float
    error: NotRequired[str | None]
    name: str
    result: NotRequired[str | None]
    result_count: NotRequired[int | None]


class ToolSchema(TypedDict):
    """A tool as described to the model: an OpenAI function without the envelope."""

    description: str
    ends_episode: bool
    name: str
    parameters: dict[str, Any]


class ToolUseScorer(TypedDict):
    """Tool calls against the row's reference, run in the simulator: five metrics and their weighted mean.…"""

    kind: Literal["tool_use"]


class TracedRollout(TypedDict):
    """A response with its tokens."""

    rollout: RolloutRead
    trace: TokenTraceRead


class TracedStep(TypedDict):
    """The responses of one step whose tokens were kept."""

    items: list[TracedRollout]
    split: Literal["train", "validation", "probe"]
    step: int | None


class Training(TypedDict):
    """One training: what it started from and learned from. Names stay when the things are deleted."""

    dataset_id: NotRequired[str | None]
    dataset_name: NotRequired[str | None]
    dataset_sha256: NotRequired[str | None]
    dataset_split: NotRequired[str | None]
    dataset_version: NotRequired[str | None]
    environment_id: NotRequired[str | None]
    environment_name: NotRequired[str | None]
    environment_sha256: NotRequired[str | None]
    job_id: NotRequired[str | None]
    job_name: NotRequired[str | None]
    model_id: NotRequired[str | None]
    model_name: NotRequired[str | None]
    recipe: NotRequired[str | None]
    step: NotRequired[int | None]


class Trajectory(TypedDict):
    """A full episode in readable form."""

    duration_s: float
    error: NotRequired[str | None]
    is_shortened: bool
    stop_reason: str
    turns: list[Turn]


class TransferProgress(TypedDict):
    """Progress of a transfer."""

    done_bytes: int
    file: NotRequired[str | None]
    total_bytes: NotRequired[int | None]


class TransferRead(TypedDict):
    """A transfer."""

    attempt: int
    can_cancel: bool
    can_resume: bool
    created_at: str
    finished_at: str | None
    has_file: bool
    has_own_card: bool
    id: str
    kind: TransferKind
    model_id: str
    model_name: str
    progress: TransferProgress | None
    reason: str | None
    request: dict[str, Any]
    result: TransferResult | None
    started_at: str | None
    state: TransferState


class TransferResult(TypedDict):
    """Result of a successful transfer."""

    commit: NotRequired[str | None]
    file: NotRequired[str | None]
    sha256: NotRequired[str | None]
    size_bytes: NotRequired[int | None]
    url: NotRequired[str | None]


class TrialRead(TypedDict):
    """Runs with the same values."""

    finished_seeds: int
    mean: float
    planned_seeds: int
    run_count: int
    spread: float | None
    trial: int
    values: dict[str, Any]


class Turn(TypedDict):
    """One message of an episode, in the order in which the model saw them."""

    calls: NotRequired[list[ToolCall]]
    duration_s: NotRequired[float | None]
    is_trained: bool
    role: Literal["system", "user", "assistant", "tool"]
    text: str
    tokens: int


class UnsharedBenchmark(TypedDict):
    """A benchmark that cannot be compared: the baseline lacks it, or all others do."""

    evaluations: list[str]
    label: str


class UserRead(TypedDict):
    """Who is logged in."""

    expires_at: NotRequired[str | None]
    method: Literal["token", "session"]
    name: str


class Variation(TypedDict):
    """Values of one parameter: a list or a range."""

    count: NotRequired[int | None]
    max: NotRequired[int | float | None]
    min: NotRequired[int | float | None]
    scale: Literal["linear", "log"]
    step: NotRequired[int | float | None]
    values: NotRequired[list[bool | int | float | str] | None]


class VerdictCounts(TypedDict):
    """Samples by verdict."""

    correct: int
    failed: int
    total: int
    truncated: int
    unanswered: int
    wrong: int


class VersionRead(TypedDict):
    """A version in the history."""

    author: str
    branches: list[str]
    created_at: str
    dataset: str
    id: str
    message: str
    number: int
    origin: Literal["import", "pipeline", "generate", "rollback"]
    parents: list[str]
    row_count: int
    size_bytes: int
    splits: dict[str, int]
    tags: list[str]
    task: str | None
    tree: str


class VoteAnswer(TypedDict):
    """A model's response."""

    model: str
    text: str


class VoteMessage(TypedDict):
    """A turn of the shared conversation."""

    content: str
    role: Literal["system", "user", "assistant"]


class VoteRead(TypedDict):
    """A vote. Model a is the one whose name comes first alphabetically."""

    a: VoteAnswer
    b: VoteAnswer
    created_at: str
    id: str
    is_blind: bool
    messages: list[VoteMessage]
    settings: VoteSettings
    verdict: VoteVerdict
    voter: str


class VoteSettings(TypedDict):
    """Shared request settings."""

    frequency_penalty: NotRequired[float | None]
    max_tokens: NotRequired[int | None]
    min_p: NotRequired[float | None]
    presence_penalty: NotRequired[float | None]
    seed: NotRequired[int | None]
    stop: NotRequired[list[str] | None]
    temperature: NotRequired[float | None]
    top_k: NotRequired[int | None]
    top_p: NotRequired[float | None]


class WandbSettings(TypedDict):
    """Weights & Biases settings. The key is a setting of the platform."""

    entity: NotRequired[str | None]
    name: NotRequired[str | None]
    project: str
    tags: NotRequired[list[str] | None]


class WinRate(TypedDict):
    """Win rate between two models."""

    high: float | None
    low: float | None
    model_a: str
    model_b: str
    ties: int
    votes: int
    win_rate: float | None
    wins_a: int
    wins_b: int


class WorkflowDetail(TypedDict):
    """An uploaded workflow."""

    code: str
    created_at: str
    files: dict[str, int] | None
    function: str
    id: str
    installed: list[str] | None
    name: str
    reason: str | None
    requirements: list[str] | None
    sha256: str
    size_bytes: int
    state: WorkflowState


class WorkflowListed(TypedDict):
    """An uploaded workflow, and what it is used by."""

    created_at: str
    files: dict[str, int] | None
    function: str
    id: str
    installed: list[str] | None
    job_count: int
    jobs: list[NamedReference]
    name: str
    reason: str | None
    requirements: list[str] | None
    sha256: str
    size_bytes: int
    state: WorkflowState
    used_by: list[str]


class WorkflowRead(TypedDict):
    """An uploaded workflow, without its code."""

    created_at: str
    files: dict[str, int] | None
    function: str
    id: str
    installed: list[str] | None
    name: str
    reason: str | None
    requirements: list[str] | None
    sha256: str
    size_bytes: int
    state: WorkflowState


class trellis_api__jobs__schemas__ResourcesRead(TypedDict):
    """Resources of a job while it runs."""

    gpus: int


class trellis_api__models__schemas__CheckpointSource(TypedDict):
    """A checkpoint of a job, kept when the job is deleted."""

    job_id: str
    kind: Literal["checkpoint"]
    step: int
