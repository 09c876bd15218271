"""Pipelines of jobs as clients ask for them and see them."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from trellis_contracts.evaluation import EngineSettings
from trellis_contracts.recipe import DataFormat, Text
from trellis_contracts.states import JobState

from trellis_api.core.choices import Choices
from trellis_api.core.references import NamedReference
from trellis_api.core.texts import NO_NUL, Description, Name
from trellis_api.evaluations.orders import Orders
from trellis_api.job_pipelines.states import PipelineState, StageState
from trellis_api.jobs.reporting.schemas import ReportTo
from trellis_api.jobs.schemas import (
    DataColumns,
    JobName,
    MetricKeyText,
    Mode,
    Progress,
    Resources,
    RevisionText,
)

MAX_STAGES = 32
#: Of a pipeline that a person writes.
MAX_TEXT_CHARACTERS = 200_000
StageId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,63}$")]
Reference = Annotated[str, StringConstraints(min_length=1, max_length=120, pattern=NO_NUL)]


class StageModel(BaseModel):
    """The model that a stage starts from: a registered one, or the output of another stage."""

    model_config = ConfigDict(extra="forbid")

    base: Reference | None = Field(default=None, description="ID (mdl_...) or name of a registered model.")
    stage: StageId | None = Field(default=None, description="A stage that exports its model.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.base is None) == (self.stage is None):
            raise ValueError("give base or stage")
        return self


class StageCreate(BaseModel):
    """One stage: a training as a launch would take it, or an evaluation."""

    model_config = ConfigDict(extra="forbid")

    id: StageId
    title: JobName | None = None
    kind: Literal["train", "evaluate"] = "train"
    needs: list[StageId] = Field(
        default_factory=list,
        max_length=MAX_STAGES,
        description="Stages that must finish first; the stage that provides the model is always included.",
    )
    model: StageModel
    seed: int = Field(default=1, ge=0, lt=2**31)
    priority: int = Field(default=0, ge=-100, le=100)

    recipe: Reference | None = Field(default=None, description="Of a training.")
    preset: Reference | None = None
    dataset: Reference | None = Field(
        default=None, description="Of a training: ID (ds_...) or name of a dataset."
    )
    dataset_version: RevisionText | None = None
    dataset_split: RevisionText | None = None
    validation_dataset: Reference | None = None
    validation_version: RevisionText | None = None
    validation_split: RevisionText | None = None
    columns: DataColumns = Field(default_factory=dict)
    data_format: DataFormat | None = None
    validation_columns: DataColumns = Field(default_factory=dict)
    validation_data_format: DataFormat | None = None
    params: Choices = Field(default_factory=dict, description="Parameters of the recipe.")
    overrides: Choices = Field(default_factory=dict, description="Dotted engine keys and values.")
    resources: Resources = Field(default_factory=Resources)
    exports: bool = Field(default=True, description="A training's checkpoint becomes a model at its end.")
    best_by: MetricKeyText | None = Field(
        default=None, description="Export the checkpoint that is best by this metric; default the last one."
    )
    mode: Mode | None = Field(default=None, description="Default as suits the metric.")
    report_to: ReportTo | None = Field(default=None, description="Of a training: as for `POST /jobs`.")

    benchmarks: Orders | None = Field(default=None, description="Of an evaluation.")
    engine: EngineSettings = Field(default_factory=EngineSettings, description="Of an evaluation.")

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.kind == "evaluate":
            if self.benchmarks is None:
                raise ValueError("an evaluation needs benchmarks")
            if self.recipe is not None or self.dataset is not None:
                raise ValueError("an evaluation has neither recipe nor dataset")
            if self.report_to is not None:
                raise ValueError("an evaluation has no report_to; it reports no metrics")
            return self
        if self.recipe is None or self.dataset is None:
            raise ValueError("a training needs recipe and dataset")
        if self.benchmarks is not None:
            raise ValueError("a training has no benchmarks; measure its model in a stage of its own")
        if self.validation_version and not (self.validation_dataset or self.validation_split):
            raise ValueError("validation_version needs validation_dataset or validation_split")
        return self

    @property
    def all_needs(self) -> list[str]:
        """Stages that have to finish first, each once."""
        return list(dict.fromkeys([*([self.model.stage] if self.model.stage else []), *self.needs]))


class JobPipelineCreate(BaseModel):
    """Stages to run as jobs, each after the stages it needs."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    description: Description = ""
    stages: list[StageCreate] = Field(min_length=1, max_length=MAX_STAGES)
    start: bool = Field(default=True, description="Start immediately; otherwise it has to be started.")


class JobPipelineText(BaseModel):
    """A pipeline as `trellis job-pipelines submit` takes it: models and datasets by id or name."""

    model_config = ConfigDict(extra="forbid")

    yaml: Annotated[str, StringConstraints(max_length=MAX_TEXT_CHARACTERS, pattern=NO_NUL)] = Field(
        description="YAML or JSON."
    )


class DocumentProblem(BaseModel):
    """A problem in a text."""

    code: str
    field: str = Field(description="Such as stages.0.model; empty for the whole.")
    message: str
    line: int | None = Field(description="From 1; null where it has none.")


class JobPipelineChecked(BaseModel):
    """The parsed text: `document` can be created; null if there are problems."""

    document: JobPipelineCreate | None
    problems: list[DocumentProblem] = Field(description="In the order of their lines.")


class StageJob(BaseModel):
    """The job that carries a stage out."""

    id: str
    name: str | None = Field(description="Null where it was deleted.")
    state: JobState | None
    progress: Progress | None
    eta_s: float | None


class StageRead(BaseModel):
    """A stage."""

    id: str
    title: str
    kind: Literal["train", "evaluate"]
    state: StageState
    needs: list[str] = Field(description="That of the model included.")
    recipe: str | None
    request: StageCreate = Field(description="As requested.")
    job: StageJob | None
    export_job: StageJob | None = Field(description="Writes the model of a training that has succeeded.")
    evaluation_id: str | None
    model: NamedReference | None = Field(description="The resulting model.")
    fingerprint: str | None = Field(description="Of all that it was made from, when it began.")
    reused_from: NamedReference | None = Field(
        description="For a skipped stage: the pipeline that already ran it."
    )
    reason: str | None
    cause: str | None
    hint: Text | None = Field(description="What to try, for a known cause.")
    started_at: datetime | None
    finished_at: datetime | None
    can_rerun: bool


class JobPipelineRead(BaseModel):
    """A pipeline."""

    id: str
    name: str
    description: str
    state: PipelineState
    stages: list[StageRead] = Field(description="In the order in which they were given.")
    can_start: bool
    can_stop: bool
    can_delete: bool
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class TemplateStage(BaseModel):
    """A stage of a template: fixed settings and choices."""

    id: str
    title: Text
    kind: Literal["train", "evaluate"]
    needs: list[str] = Field(default_factory=list)
    model_stage: str | None = Field(default=None, description="Where its model comes from; null: the base.")
    recipe: str | None = None
    preset: str | None = None
    params: dict[str, Any] = Field(default_factory=dict)
    exports: bool = True
    dataset_split: str | None = None
    dataset: Text | None = Field(default=None, description="The rows that it needs.")
    sample: str | None = Field(default=None, description="Sample dataset with such rows.")
    validation_sample: str | None = Field(default=None, description="Sample dataset to validate on.")
    benchmarks: list[dict[str, Any]] = Field(
        default_factory=list, description="Orders of an evaluation; dataset ids are left to choose."
    )
    is_optional: bool = False


class JobPipelineTemplate(BaseModel):
    """A pipeline template."""

    id: str
    title: Text
    description: Text
    model: str | None = Field(default=None, description="Catalogue model that it was made for.")
    stages: list[TemplateStage]
    missing_recipes: list[str] = Field(
        default_factory=list, description="Missing on this platform, so the template cannot be used."
    )


class JobPipelineTemplateList(BaseModel):
    """All templates."""

    items: list[JobPipelineTemplate]
