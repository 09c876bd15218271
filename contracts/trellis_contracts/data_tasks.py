"""Long work on data: what the API asks for, and how a worker tells how far it is.

A task is a row that a worker claims. Whatever can be interrupted goes on where it stopped: the work
lies in a folder of the task's own until it is settled.
"""

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import Field, TypeAdapter, model_validator

from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.generation import Generation
from trellis_contracts.pipeline import Pipeline
from trellis_contracts.recipe import Strict

Mixed = Literal["quarantine", "text"]
#: "openai": a file for fine-tuning as OpenAI's API takes it, converted while it is read.
ImportForm = Literal["plain", "openai"]


class DataTaskState(StrEnum):
    """State of a task."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELLED = "cancelled"


class DataTaskKind(StrEnum):
    """What a task does."""

    IMPORT = "import"
    PIPELINE = "pipeline"
    PREVIEW = "preview"
    STATISTICS = "statistics"
    DIFF = "diff"
    TOKENS = "tokens"
    GENERATE = "generate"


#: States in which nothing changes by itself any more.
DATA_TASK_FINISHED = frozenset({DataTaskState.SUCCEEDED, DataTaskState.FAILED, DataTaskState.CANCELLED})


class UploadSource(Strict):
    """A file that was uploaded."""

    kind: Literal["upload"] = "upload"
    upload: str = Field(description="Id of a complete upload (up_...).", max_length=32)


class PathSource(Strict):
    """A file or folder in the data root, read in place."""

    kind: Literal["path"] = "path"
    path: str = Field(min_length=1, max_length=1000, description="Relative to the data root.")


class HubSource(Strict):
    """A dataset of a hub, at one commit (ModelScope: at a branch or tag)."""

    kind: Literal["hub"] = "hub"
    hub: Literal["huggingface", "modelscope"] = Field(
        default="huggingface", description="Which hub: Hugging Face or ModelScope."
    )
    repo_id: str = Field(
        max_length=200,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?$",
        description="owner/name.",
    )
    revision: str = Field(
        default="main",
        max_length=120,
        pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$",
        description="Branch, tag or commit; default: main, on ModelScope master.",
    )
    under: str = Field(default="", max_length=500, description="Only this folder or file of the dataset.")

    @model_validator(mode="after")
    def _name_default_branch(self) -> Self:
        if self.hub == "modelscope" and "revision" not in self.model_fields_set:
            self.revision = "master"
        return self


class S3Source(Strict):
    """An object, or the objects below a prefix; credentials are those of the workers."""

    kind: Literal["s3"] = "s3"
    #: The bucket's part may have what keys in it would have: those are refused with a word of their own.
    url: str = Field(
        max_length=1000,
        pattern=r"^s3://[A-Za-z0-9._:@%+=~!$&'()*,;-]+(/[^\x00\s]*)?$",
        description="s3://bucket/folder",
    )


ImportSource = Annotated[UploadSource | PathSource | HubSource | S3Source, Field(discriminator="kind")]


class ImportTask(Strict):
    """Rows of a source as the next version of a dataset."""

    kind: Literal[DataTaskKind.IMPORT] = DataTaskKind.IMPORT
    source: ImportSource
    #: Of a column that mixes numbers and texts: the first kind counts, or all of it becomes text.
    mixed: Mixed = "quarantine"
    #: ``replace``: the rows are the version; ``append``: they come behind those of the branch's tip.
    mode: Literal["replace", "append"] = "replace"
    branch: str = "main"
    message: str = Field(default="", max_length=2000)
    #: The split that the rows go to; a source with files called train, test ... keeps those.
    split: str = "train"
    #: Every file is a split of its own, called as the file is.
    is_split_by_file: bool = False
    form: ImportForm = "plain"


class VersionOutput(Strict):
    """The rows become the next version of the dataset that they came from."""

    kind: Literal["version"] = "version"
    branch: str = "main"
    message: str = Field(default="", max_length=2000)


class DatasetOutput(Strict):
    """The rows become a dataset of their own; it exists, empty, from the moment that the run is asked for."""

    kind: Literal["dataset"] = "dataset"
    dataset_id: str


class NoOutput(Strict):
    """Only the report is kept."""

    kind: Literal["none"] = "none"


RunOutput = Annotated[VersionOutput | DatasetOutput | NoOutput, Field(discriminator="kind")]


class PipelineTask(Strict):
    """A pipeline over the rows of a version."""

    kind: Literal[DataTaskKind.PIPELINE] = DataTaskKind.PIPELINE
    pipeline: Pipeline
    #: The saved pipeline and its version, where it is one.
    pipeline_id: str | None = None
    pipeline_version: int | None = None
    #: Splits whose rows are worked on; None for all.
    splits: list[str] | None = None
    output: RunOutput
    #: Judges that steps name, as ``TRELLIS_JUDGES`` calls them.
    judges: list[str] = Field(default_factory=list)
    #: US dollars that each judge may cost.
    max_judge_cost: float = Field(default=1.0, gt=0)
    #: Further inputs by name (a benchmark to stay clear of): dataset id and version.
    resources: dict[str, "DatasetVersion"] = Field(default_factory=dict)
    executor: Literal["processes", "ray"] = "processes"


class DatasetVersion(Strict):
    """A version of a dataset."""

    dataset_id: str = Field(max_length=32)
    version: str = Field(max_length=100, pattern=r"^[^\x00]*$")


class PreviewTask(Strict):
    """A pipeline on a few rows."""

    kind: Literal[DataTaskKind.PREVIEW] = DataTaskKind.PREVIEW
    pipeline: Pipeline
    split: str
    rows: int = Field(default=20, ge=1, le=200)
    at_random: bool = False
    find_changed: bool = False
    judges: list[str] = Field(default_factory=list)
    max_judge_cost: float = Field(default=1.0, gt=0)
    resources: dict[str, DatasetVersion] = Field(default_factory=dict)


class StatisticsTask(Strict):
    """Statistics of a version, with lengths in a model's tokens."""

    kind: Literal[DataTaskKind.STATISTICS] = DataTaskKind.STATISTICS
    #: Model on the platform whose tokenizer counts.
    model: str | None = None


class DiffTask(Strict):
    """What changed from another version to the task's."""

    kind: Literal[DataTaskKind.DIFF] = DataTaskKind.DIFF
    before: str
    #: Column that tells rows apart; without it a changed row is one removed and one added.
    key: str | None = None


class TokensTask(Strict):
    """Rows as a model is trained on them: the chat template applied, tokens counted, masked ones marked."""

    kind: Literal[DataTaskKind.TOKENS] = DataTaskKind.TOKENS
    model: str
    split: str
    offset: int = Field(default=0, ge=0)
    limit: int = Field(default=20, ge=1, le=50)
    #: Longest sequence that training would keep; None where nothing is cut.
    max_length: int | None = Field(default=None, ge=2)


class GenerateTask(Strict):
    """Rows that a model writes; the seeds are the rows of the task's version."""

    kind: Literal[DataTaskKind.GENERATE] = DataTaskKind.GENERATE
    generation: Generation
    #: Model on the platform that is served for as long as the task runs; None: the generation's endpoint.
    model: str | None = None
    #: Slots that serving it takes: GPUs, none on a CPU.
    slots: int = Field(default=0, ge=0)
    split: str = "train"
    #: The judge that the method's check names, if it names one.
    judges: list[str] = Field(default_factory=list)
    max_judge_cost: float = Field(default=1.0, gt=0)
    output: RunOutput


TaskRequest = Annotated[
    ImportTask | PipelineTask | PreviewTask | StatisticsTask | DiffTask | TokensTask | GenerateTask,
    Field(discriminator="kind"),
]
TASK_REQUEST: TypeAdapter[TaskRequest] = TypeAdapter(TaskRequest)


class Needs(Strict):
    """What operators may know beside parameters and rows, with places of everything: for a process without
    a database.
    """

    #: Folder of the model whose tokenizer counts.
    tokenizer: Path | None = None
    #: By name the Parquet files of a version, in order.
    resources: dict[str, list[Path]] = Field(default_factory=dict)
    judges: dict[str, JudgeEndpoint] = Field(default_factory=dict)
    #: US dollars that each judge may cost.
    max_judge_cost: float = 1.0
    #: Whether addresses of this machine and of private networks may be opened.
    allows_local_addresses: bool = False


class DataTaskProgress(Strict):
    """Progress of a task; unknown values are null."""

    #: What is being done, as a code: ``bring``, ``read``, ``scan``, ``reduce``, ``apply``, ``count``,
    #: ``record``, ``serve``, ``ask`` ...
    phase: str = ""
    #: Steps of the pipeline that are being worked on.
    steps: list[str] = Field(default_factory=list)
    stage: int | None = None
    stages: int | None = None
    rows_done: int = 0
    rows: int | None = None
    rows_per_s: float | None = None
    #: Of this phase.
    eta_s: float | None = None
    #: What else counts up: ``quarantined``, ``files_done``, ``cost`` ...
    counts: dict[str, float] = Field(default_factory=dict)


#: Files in the folder of a task.
REQUEST_FILE = "request.json"
PROGRESS_FILE = "progress.json"
RESULT_FILE = "result.json"
#: Of the child, for work that cannot be done as asked: holds code and message for the person.
FAILURE_FILE = "failure.json"
EXIT_BAD_REQUEST = 65  # EX_DATAERR
#: It took more memory than it may.
EXIT_NO_MEMORY = 71  # EX_OSERR
#: Asked to end; what is done so far stays in the folder.
EXIT_STOPPED = 75  # EX_TEMPFAIL


class TaskFailure(Strict):
    """Why a task cannot be done."""

    code: str
    message: str
    details: dict[str, Any] = Field(default_factory=dict)
