"""What the job endpoints take and give."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, StringConstraints, model_validator
from trellis_contracts.recipe import DataFormat, Text
from trellis_contracts.rewards import RewardTerm
from trellis_contracts.spec import ExportForm
from trellis_contracts.states import JobState
from trellis_recipes.issues import Issue
from trellis_recipes.memory.schemas import MemoryEstimate

from trellis_api.core.choices import Choices, check_choices
from trellis_api.core.pagination import Page
from trellis_api.core.pricing import Cost
from trellis_api.core.references import NamedReference
from trellis_api.core.texts import NO_NUL, Description, Name
from trellis_api.evaluations.orders import EvaluateWhileTraining
from trellis_api.jobs.alarms.schemas import AlarmRead, Severity
from trellis_api.jobs.evaluating.schemas import EvaluateRead
from trellis_api.jobs.fields.schemas import FieldValue
from trellis_api.jobs.fit.schemas import DataFit
from trellis_api.jobs.forecast.schemas import RunForecast
from trellis_api.jobs.reporting.schemas import JobReportRead, ReportTo

Tag = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1, max_length=64, pattern=NO_NUL)]
JobName = Annotated[
    str, StringConstraints(strip_whitespace=True, min_length=1, max_length=200, pattern=NO_NUL)
]

#: Notes on one job, in characters.
MAX_NOTES = 20_000
MAX_TAGS = 32
Notes = Annotated[str, StringConstraints(max_length=MAX_NOTES, pattern=NO_NUL)]
Priority = Annotated[int, Field(ge=-100, le=100)]


ColumnName = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=NO_NUL)]
DataColumns = Annotated[dict[ColumnName, ColumnName], Field(max_length=16), AfterValidator(check_choices)]


RevisionText = Annotated[str, StringConstraints(min_length=1, max_length=100, pattern=NO_NUL)]


class Resources(BaseModel):
    """Resources of a job while it runs."""

    model_config = ConfigDict(extra="forbid")

    gpus: int = Field(default=1, ge=1, le=4096, description="GPU slots; logical ones on a CPU platform.")


class ResourcesRead(BaseModel):
    """Resources of a job while it runs."""

    gpus: int = Field(description="GPU slots; 0 for an export, and for an evaluation on a CPU.")


JobKind = Literal["train", "export", "evaluate", "serve"]
MetricKeyText = Annotated[str, StringConstraints(min_length=1, max_length=256, pattern=NO_NUL)]
Mode = Literal["max", "min"]


class BestBy(BaseModel):
    """The metric that selects the best checkpoint."""

    model_config = ConfigDict(extra="forbid")

    metric: MetricKeyText
    mode: Mode | None = Field(default=None, description="Default depends on the metric; min for a loss.")


class ExportAs(BaseModel):
    """A model to make of the checkpoint when the job has succeeded."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Of the model that is registered.")
    best_by: MetricKeyText | None = Field(
        default=None, description="The checkpoint that is best by this metric; default the last one."
    )
    mode: Mode | None = Field(default=None, description="Default as suits the metric.")


class ExportAsRead(ExportAs):
    """The request and its result."""

    job: "NamedReference | None" = Field(default=None, description="The export job, once it is queued.")
    problem: str | None = Field(default=None, description="Why nothing was exported, or not as requested.")


class ExportCreate(BaseModel):
    """Write a checkpoint as a model."""

    model_config = ConfigDict(extra="forbid")

    name: Name = Field(description="Of the model that is registered when the export has succeeded.")
    description: Description = ""
    form: ExportForm = Field(
        default="merged",
        description="merged: a full model with the adapter merged into its base; adapter: only the adapter.",
    )


class ExportRead(BaseModel):
    """What an export job writes."""

    source: "NamedReference" = Field(description="The job that made the checkpoint.")
    step: int
    form: ExportForm
    name: str = Field(description="Requested name of the model.")


class JobCreate(BaseModel):
    """A job to run."""

    model_config = ConfigDict(extra="forbid")

    name: JobName
    recipe: str = Field(description="Id of a recipe, e.g. grpo.")
    preset: str | None = Field(default=None, description="Id of one of the recipe's presets.")
    model: str = Field(description="ID (mdl_...) or name of a registered model.")
    dataset: str = Field(description="ID (ds_...) or name of the training dataset.")
    validation_dataset: str | None = Field(
        default=None,
        description="ID or name of a dataset; without one, rows of the training dataset are held out.",
    )
    dataset_version: RevisionText | None = Field(
        default=None, description="Version, branch or tag; default the tip of main, as it is now."
    )
    dataset_split: RevisionText | None = Field(default=None, description="Default train, or the only one.")
    validation_version: RevisionText | None = Field(
        default=None,
        description="Of the validation dataset; without one, of the training dataset, by default the "
        "version that is trained on.",
    )
    validation_split: RevisionText | None = Field(
        default=None,
        description="Of the validation dataset; without a validation dataset, of the training dataset: its "
        "rows are then the validation.",
    )
    columns: DataColumns = Field(
        default_factory=dict,
        description="Columns of the training dataset by the role that they play, e.g. prompt: question; "
        "roles that are not named are looked for.",
    )
    data_format: DataFormat | None = Field(
        default=None, description="Format to read the rows as; default the detected one."
    )
    validation_columns: DataColumns = Field(
        default_factory=dict,
        description="Of the validation's rows, where they have columns of their own; default as for the "
        "training dataset.",
    )
    validation_data_format: DataFormat | None = Field(
        default=None, description="Format of the validation rows; default as for the training dataset."
    )
    params: Choices = Field(default_factory=dict, description="Parameters of the recipe.")
    overrides: Choices = Field(default_factory=dict, description="Dotted engine keys and values.")
    seed: int = Field(default=1, ge=0, lt=2**31)
    resources: Resources = Field(default_factory=Resources)
    tags: list[Tag] = Field(default_factory=list, max_length=MAX_TAGS)
    priority: Priority = Field(default=0, description="Higher runs first.")
    keep_best_by: BestBy | None = Field(
        default=None,
        description="Where only the last checkpoints are kept (keep_checkpoints), the best one stays too; "
        "default by the recipe's first validation metric.",
    )
    export_as: ExportAs | None = Field(
        default=None, description="Export a checkpoint as a model when the job has succeeded."
    )
    evaluate: EvaluateWhileTraining | None = Field(
        default=None, description="Evaluate saved checkpoints on benchmarks during and after training."
    )
    report_to: ReportTo | None = Field(
        default=None,
        description="Send the metrics to Weights & Biases too, to one run for all attempts of the job.",
    )

    @model_validator(mode="after")
    def _check_validation(self) -> Self:
        if self.validation_version and not (self.validation_dataset or self.validation_split):
            raise ValueError("validation_version needs validation_dataset or validation_split")
        has_reading = self.validation_columns or self.validation_data_format
        if has_reading and not (self.validation_dataset or self.validation_split):
            raise ValueError("how to read the validation needs validation_dataset or validation_split")
        if self.keep_best_by is not None and self.evaluate is not None and self.evaluate.best_by is not None:
            raise ValueError("give keep_best_by or evaluate.best_by, not both")
        return self


class JobClone(BaseModel):
    """Changes for the copy; everything else stays the same."""

    model_config = ConfigDict(extra="forbid")

    name: JobName | None = None
    params: Choices = Field(default_factory=dict, description="Merged into the original's parameters.")
    overrides: Choices = Field(default_factory=dict, description="Merged into the original's keys.")
    seed: int | None = Field(default=None, ge=0, lt=2**31)
    tags: list[Tag] | None = Field(default=None, max_length=MAX_TAGS)
    report_to: ReportTo | None = Field(
        default=None, description="Null: send the metrics nowhere. Not given: as the original."
    )


class JobUpdate(BaseModel):
    """Changes to a job; fields not given stay the same."""

    model_config = ConfigDict(extra="forbid")

    name: JobName | None = None
    notes: Notes | None = Field(default=None, description="Markdown; an empty text removes them.")
    is_starred: bool | None = None
    tags: list[Tag] | None = Field(default=None, max_length=MAX_TAGS, description="The new tags.")
    add_tags: list[Tag] = Field(default_factory=list, max_length=MAX_TAGS)
    remove_tags: list[Tag] = Field(default_factory=list, max_length=MAX_TAGS)
    priority: Priority | None = Field(default=None, description="Of a queued job only; higher runs first.")
    group: Annotated[str, StringConstraints(strip_whitespace=True, max_length=200, pattern=NO_NUL)] | None = (
        Field(default=None, description="Group of related runs; an empty text removes it from its group.")
    )

    @model_validator(mode="after")
    def _check_tags(self) -> Self:
        if self.tags is not None and (self.add_tags or self.remove_tags):
            raise ValueError("give tags, or add_tags and remove_tags, not both")
        return self


class JobResume(BaseModel):
    """Where to resume."""

    model_config = ConfigDict(extra="forbid")

    checkpoint_step: int | None = Field(
        default=None, ge=0, le=2**53, description="Step of a checkpoint; default the newest, or the start."
    )


class JobPreview(BaseModel):
    """What a launch would run, built by the same code."""

    engine: str
    params: dict[str, Any] = Field(description="All parameters with their values.")
    derived: list[str] = Field(description="Names of parameters that were derived.")
    config: dict[str, Any] = Field(description="The engine's whole configuration.")
    engine_overrides: list[str]
    env: dict[str, str]
    command: str = Field(description="Replays the run without the platform.")
    data: DataFit | None = Field(description="How the dataset fits; null for an unknown recipe.")
    validation_data: DataFit | None = Field(
        description="How the validation rows fit; null if training rows are held out."
    )
    rewards: list[RewardTerm] = Field(
        description="What a response earns, also where plain parameters say it; empty where nothing is."
    )
    memory: MemoryEstimate | None = Field(
        description="Estimated memory of the run; null if the model's architecture is unknown."
    )
    forecast: RunForecast | None = Field(
        description="Time, start and disk; null where the request cannot run."
    )
    warnings: list[Issue]
    errors: list[Issue]


class Progress(BaseModel):
    """Progress of a job."""

    phase: str | None = Field(description="preparing, loading, training, validating, saving or finished.")
    step: int
    total_steps: int | None
    fraction: float | None = Field(description="0 to 1; null while the number of steps is not known.")


class ParameterChange(BaseModel):
    """A parameter's value in a job, and the one to try instead."""

    parameter: str
    title: Text
    current: int | float | bool | str | None = Field(description="Null where the platform chose it.")
    suggested: int | float | bool | str


class Failure(BaseModel):
    """Why a job did not succeed."""

    reason: str
    cause: str | None = Field(description="Code of a known cause, e.g. out_of_memory.")
    exit_code: int | None
    hint: Text | None = Field(description="What to try, for a known cause.")
    changes: list[ParameterChange] = Field(description="Changes known to help, for a clone of the job.")
    resume_helps: bool = Field(description="Another attempt with the same settings may get further.")
    last_lines: list[str] = Field(description="The last lines of output (only when reading one job).")


class HeadlineMetric(BaseModel):
    """Summary of one metric of a job."""

    key: str
    mode: Mode | None = Field(description="Whether higher or lower is better; null where neither is.")
    last: float | None = Field(description="Newest value; null where it is not a finite number.")
    last_step: int
    best: float | None = Field(description="Without a mode, the highest.")
    best_step: int | None


class Resume(BaseModel):
    """Where the curves of a job change over to another attempt."""

    attempt: int
    step: int = Field(description="Step of the checkpoint that it continued from.")


class JobRead(BaseModel):
    """A job."""

    id: str
    name: str
    kind: JobKind = Field(
        description="train; export: a checkpoint becomes a model; evaluate: a model measured on benchmarks."
    )
    state: JobState
    recipe: str
    preset: str | None
    model: NamedReference
    dataset: NamedReference | None = Field(description="Null for a job that does not train.")
    dataset_version: str | None = Field(description="The version that is trained on.")
    dataset_split: str | None
    validation_dataset: NamedReference | None
    validation_version: str | None
    validation_split: str | None
    keep_best_by: BestBy | None
    export: ExportRead | None = Field(description="What an export job writes.")
    exported_model: NamedReference | None = Field(description="The model that an export has registered.")
    export_as: ExportAsRead | None = Field(description="What is exported when the job has succeeded.")
    evaluate: EvaluateRead | None = Field(description="Benchmarks for its saved checkpoints.")
    evaluation_id: str | None = Field(description="The evaluation that a job of kind evaluate carries out.")
    report_to: JobReportRead | None = Field(description="Where its metrics are sent as well.")
    columns: dict[str, str] = Field(description="Requested mapping role → column.")
    data_format: DataFormat | None = Field(description="Requested format of the rows, if any.")
    validation_columns: dict[str, str] = Field(description="Of the validation, where it has its own.")
    validation_data_format: DataFormat | None
    params: dict[str, Any]
    overrides: dict[str, Any]
    seed: int
    resources: ResourcesRead
    tags: list[str]
    is_starred: bool
    notes: str | None = Field(description="Markdown; null in lists.")
    priority: int
    attempt: int
    cloned_from: str | None
    sweep: NamedReference | None = Field(description="The sweep that it belongs to.")
    group: str | None = Field(description="Group of related runs, such as the seeds of one trial.")
    resume_step: int | None = Field(description="Step of the checkpoint that this attempt continued from.")
    resumes: list[Resume] = Field(
        description="All attempts that continued from a checkpoint and whose steps still stand, oldest first "
        "(only when reading one job or comparing jobs)."
    )
    created_at: datetime
    queued_at: datetime
    launched_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    stop_requested_at: datetime | None
    earlier_run_time_s: float = Field(description="Total seconds of earlier attempts.")
    cost: Cost | None = Field(
        description="Run time of all attempts times slots, at the current price. Null without slots, before "
        "the first attempt and where the owner set no price (only when listing or reading jobs)."
    )
    progress: Progress
    eta_s: float | None = Field(description="Seconds to the last step, at this attempt's speed so far.")
    queue_position: int | None = Field(description="1 is next; null unless queued.")
    failure: Failure | None
    headline_metrics: list[str] = Field(description="Keys to chart first.")
    metric: HeadlineMetric | None = Field(
        description="The requested metric, else its first reported headline metric (only in lists)."
    )
    fields: dict[str, FieldValue] = Field(
        description="Values of the requested fields, null where there is none.",
    )
    field_modes: dict[str, Mode] = Field(description="Of the requested metrics: which values are better.")
    alarm_count: int = Field(description="Active alarms.")
    worst_alarm: Severity | None = Field(description="The worst severity among the active alarms.")
    alarms: list[AlarmRead] = Field(
        description="Active and past alarms of all attempts, active ones first "
        "(only when reading one job or comparing jobs)."
    )
    can_stop: bool
    can_resume: bool
    can_clone: bool
    can_delete: bool
    last_event_id: int = Field(description="Start the event stream after this position to miss nothing.")


class JobGroupRead(BaseModel):
    """A group of a list of jobs."""

    value: str | None = Field(
        description="What its jobs have in common: a recipe, a tag, a state, a group, or the ID of a model, "
        "dataset or sweep; null for jobs without one."
    )
    count: int = Field(description="Jobs in the group that match the filters, on all pages.")


class JobPage(Page[JobRead]):
    """A page of jobs."""

    groups: list[JobGroupRead] | None = Field(
        default=None, description="The groups on this page, in order; null without `group_by`."
    )


class MetricSeries(BaseModel):
    """One curve. `steps` and `values` run in parallel."""

    key: str
    steps: list[int]
    values: list[float | None] = Field(description="Null is a gap: the value is not a finite number.")
    non_finite: list["NonFinitePoint"] = Field(description="Values at the gaps.")
    total_points: int = Field(description="Number of stored points.")
    is_downsampled: bool = Field(description="Only the extremes of every stretch are in here.")
    stretch_steps: int = Field(description="Steps of such a stretch; 1 for a complete curve.")


class NonFinitePoint(BaseModel):
    """A value that is no finite number."""

    step: int
    value: Literal["nan", "inf", "-inf"]


class StepClock(BaseModel):
    """Time and tokens up to steps of a job, and when the steps ended.

    Columns run in parallel, over every step of a short run, and over some of a long one. They are summed
    over all steps before that. A column is null where the job did not report what it takes, an entry where
    it did not at that step.
    """

    steps: list[int]
    elapsed_s: list[float | None] | None = Field(
        description="Seconds of training since the start; stops between attempts don't count."
    )
    at: list[datetime | None] | None = Field(
        description="When the steps ended; of a resumed job with the last step before and the first after."
    )
    tokens: list[float | None] | None = Field(description="Tokens since the start.")


class MetricsRead(BaseModel):
    """Metric curves of a job."""

    series: list[MetricSeries]
    clock: StepClock | None = Field(
        default=None, description="Null unless asked for, and where nothing of it was reported."
    )
    last_event_id: int = Field(description="Stream events after this position to continue the curves.")


class MetricKey(BaseModel):
    """A metric that the job has reported, under the engine's own name."""

    key: str
    last_step: int
    last_value: float | None = Field(description="Null where it is not a finite number.")


class LogLineRead(BaseModel):
    """One line of output."""

    line: int
    attempt: int
    stream: Literal["stdout", "stderr", "platform"]
    time: datetime
    text: str


class LogPage(BaseModel):
    """Consecutive lines."""

    lines: list[LogLineRead]
    next_after: int = Field(description="Pass as `after` to continue.")
    total_lines: int


#: Which samples: of what is trained on, or of what is measured with.


class ManifestRead(BaseModel):
    """Everything needed to reproduce an attempt."""

    attempt: int
    manifest: dict[str, Any]
