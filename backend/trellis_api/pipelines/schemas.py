"""Pipelines and their runs as clients see them."""

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field
from trellis_contracts.data_tasks import DatasetVersion
from trellis_contracts.pipeline import Pipeline
from trellis_contracts.recipe import Text
from trellis_contracts.renamed import Renamed, deprecated_field
from trellis_data.outcome import StepReport

from trellis_api.core.texts import NO_NUL, Description, Name
from trellis_api.data_tasks.schemas import DataTaskRead, Purpose
from trellis_api.datasets.schemas import CutValues, RefName

YamlText = Annotated[str, Field(max_length=1_000_000)]
Revision = Annotated[
    str | None,
    Field(max_length=100, pattern=NO_NUL, description="Version, branch or tag; default main."),
]
SplitName = Annotated[str, Field(max_length=100, pattern=NO_NUL)]
#: Of a judge or a resource.
ShortName = Annotated[str, Field(min_length=1, max_length=100, pattern=NO_NUL)]
Judges = Annotated[
    list[ShortName],
    Field(max_length=20, description="Judges that may be asked; those that steps name are, in any case."),
]
MaxJudgeCost = Annotated[float, Field(gt=0, le=100_000, description="Cost limit per judge in US dollars.")]
Resources = Annotated[
    dict[ShortName, DatasetVersion],
    Field(max_length=20, description="Further rows by the name that steps use, such as a benchmark."),
]


class OperatorRead(Renamed):
    """An operator with the schema of its parameters, from which forms are made."""

    old_names: ClassVar = {"params": "params_schema"}

    id: str
    group: Literal["clean", "deduplicate", "score", "filter", "convert", "split"]
    title: Text
    help: Text
    needs_all_rows: bool = Field(
        description="It needs all rows to decide on one; a preview only sees the sample."
    )
    params_schema: dict[str, Any] = Field(
        description="JSON Schema (2020-12) of a step's `params`, with texts in both languages."
    )

    @deprecated_field("params_schema")
    def params(self) -> dict[str, Any]:
        return self.params_schema


class OperatorList(BaseModel):
    """All operators, in typical order of use."""

    items: list[OperatorRead]


class PipelineProblemRead(BaseModel):
    """A problem in a pipeline."""

    step: str | None = Field(description="Null where it is about the pipeline as a whole.")
    field: str = Field(description="Place in the document, such as steps.2.params.threshold.")
    code: str
    message: str


class PipelineCheck(BaseModel):
    """A pipeline to check: as a document or as YAML; with a dataset also against its columns."""

    model_config = ConfigDict(extra="forbid")

    pipeline: dict[str, Any] | None = None
    yaml: YamlText | None = None
    dataset: str | None = Field(default=None, description="ID (ds_...) or name.")
    version: Revision = None
    resources: Resources = Field(default_factory=dict)


class PipelineChecked(BaseModel):
    """Problems of a pipeline; ``pipeline`` and ``yaml`` are null if it cannot be parsed."""

    problems: list[PipelineProblemRead]
    pipeline: Pipeline | None
    yaml: str | None = Field(description="As `trellis data run` reads it.")
    hash: str | None


class PipelineSave(BaseModel):
    """A pipeline to save."""

    model_config = ConfigDict(extra="forbid")

    pipeline: Pipeline
    message: Description = ""


class PipelineRead(BaseModel):
    """A saved pipeline."""

    id: str
    name: Name
    description: str
    version: int
    pipeline: Pipeline
    yaml: str
    hash: str
    message: str = Field(description="Of this version.")
    created_at: datetime
    updated_at: datetime


class PipelineVersionRead(BaseModel):
    """A version of a saved pipeline."""

    number: int
    pipeline: Pipeline
    hash: str
    message: str
    created_at: datetime


class PipelineVersionList(BaseModel):
    """All versions of a pipeline, newest first."""

    items: list[PipelineVersionRead]


class PreviewCreate(BaseModel):
    """A pipeline to preview on a few rows; nothing is saved."""

    model_config = ConfigDict(extra="forbid")

    pipeline: Pipeline
    dataset: str = Field(description="ID (ds_...) or name.")
    version: Revision = None
    split: SplitName | None = Field(default=None, description="Default train, or the only one.")
    rows: int = Field(default=20, ge=1, le=200)
    at_random: bool = Field(default=False, description="Sample rows randomly instead of taking the first.")
    find_changed: bool = Field(
        default=False,
        description="Search for rows that a step changes or drops, within 20,000 rows and 3 s. Steps that "
        "compare rows or call models are not searched.",
    )
    judges: Judges = Field(default_factory=list)
    max_judge_cost: MaxJudgeCost = 1.0
    resources: Resources = Field(default_factory=dict)


class ToVersion(BaseModel):
    """The rows become the next version of the dataset."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["version"] = "version"
    branch: RefName = Field(default="main", description="A new name creates a branch there.")
    message: Description = ""


class ToDataset(BaseModel):
    """The rows become a new dataset."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["dataset"] = "dataset"
    name: Name
    description: Description = ""


class ToNothing(BaseModel):
    """Only the report is kept."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["none"] = "none"


OutputRequest = Annotated[ToVersion | ToDataset | ToNothing, Field(discriminator="kind")]


class RunCreate(BaseModel):
    """A pipeline to run over a version: given here, or saved before."""

    model_config = ConfigDict(extra="forbid")

    pipeline: Pipeline | None = None
    pipeline_id: str | None = Field(default=None, description="A saved pipeline (pip_...).")
    pipeline_version: int | None = Field(default=None, ge=1, description="Default the newest.")
    dataset: str = Field(description="ID (ds_...) or name.")
    version: Revision = None
    splits: Annotated[list[SplitName], Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="Default all."
    )
    output: OutputRequest = Field(default_factory=ToVersion)
    purpose: Purpose = "pipeline"
    judges: Judges = Field(default_factory=list)
    max_judge_cost: MaxJudgeCost = 1.0
    resources: Resources = Field(default_factory=dict)
    executor: Literal["processes", "ray"] = Field(
        default="processes", description="ray: shards are processed by the whole cluster."
    )


class FunnelBarRead(BaseModel):
    """Rows left after a step; the first bar, without a step, is the input."""

    step: str | None
    rows: int


class RunStepRead(StepReport):
    """Result of a step, and which details are available."""

    has_dropped: bool = Field(description="Dropped rows can be read.")
    has_clusters: bool = Field(description="Clusters of duplicates can be read.")


class RunReportRead(BaseModel):
    """The report of a run."""

    rows_in: int
    rows_out: int
    funnel: list[FunnelBarRead]
    steps: list[RunStepRead]
    outputs: dict[str, int] = Field(description="Rows by split.")
    seconds: float
    peak_memory_bytes: int


class RunRead(BaseModel):
    """A run of a pipeline."""

    task: DataTaskRead
    pipeline: Pipeline
    pipeline_id: str | None
    pipeline_version: int | None
    splits: list[str] | None
    output: dict[str, Any]
    report: RunReportRead | None = Field(description="Once it has succeeded.")


class DroppedRow(BaseModel):
    """A row that a step dropped, and why."""

    position: int | None = Field(description="Among all rows of the input.")
    reason: str | None
    row: dict[str, Any]


class DroppedRows(BaseModel):
    """A window of the rows that a step dropped."""

    offset: int
    row_count: int
    rows: list[DroppedRow]
    cut: CutValues = []


class ClusterMember(BaseModel):
    """A row of a cluster."""

    position: int = Field(description="Among all rows of the step's input.")
    survives: bool
    similarity: float = Field(description="To the row that survives, 0 to 1.")
    text: str | None = Field(description="The beginning of its text; null in the depth of huge clusters.")


class Cluster(BaseModel):
    """Rows that are duplicates of each other."""

    number: int
    size: int
    members: list[ClusterMember] = Field(description="The surviving row first; at most twenty.")


class Clusters(BaseModel):
    """A window of clusters, largest first."""

    offset: int
    cluster_count: int
    clusters: list[Cluster]
