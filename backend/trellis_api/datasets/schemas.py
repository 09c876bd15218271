"""Datasets as clients see them."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from trellis_contracts.data_tasks import ImportSource, Mixed
from trellis_contracts.recipe import DataFormat, Text
from trellis_data.statistics.model import Statistics
from trellis_data.versions.differences import Counts
from trellis_data.versions.version_rows import Condition

from trellis_api.core.texts import NO_NUL, Description, Licence, Name
from trellis_api.data_tasks.schemas import DataTaskRead
from trellis_api.datasets.states import DatasetState

RefName = Annotated[
    str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$", description="Letters, digits, . _ -")
]
Revision = Annotated[
    str,
    Field(
        max_length=100,
        pattern=NO_NUL,
        description="A version id (or its first eight digits), branch or tag.",
    ),
]


class ColumnRead(BaseModel):
    """One column and its type."""

    name: str
    type: str = Field(description="text, integer, number, boolean, list<text>, object{role: text} ...")


class DatasetWarning(BaseModel):
    """A warning that does not prevent training."""

    code: str = Field(
        description="empty_values, format_unknown, rows_in_quarantine or what reading a file found."
    )
    message: str
    column: str | None = None
    row_count: int | None = Field(default=None, description="Rows concerned.")


class DatasetOrigin(BaseModel):
    """Where the rows of the first version came from."""

    kind: Literal["upload", "path", "hub", "s3", "pipeline", "generation", "sample"]
    name: str = Field(
        description="File name, path, Hub id, URL, name of the sample or of the source dataset."
    )
    revision: str | None = Field(default=None, description="The commit on a hub.")
    size_bytes: int | None = None
    sha256: str | None = Field(default=None, description="Of an uploaded file.")
    dataset: str | None = Field(default=None, description="The dataset that a pipeline or generation read.")
    version: str | None = None


class SampleDataset(BaseModel):
    """A sample dataset."""

    name: str
    title: Text
    description: Text
    format: DataFormat
    dataset_id: str | None = Field(description="Its dataset on this platform; null until it is added.")


class SampleDatasetList(BaseModel):
    """All sample datasets."""

    items: list[SampleDataset]


class DatasetRead(BaseModel):
    """A dataset. Row facts are those of the tip of its branch main; empty without rows."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    description: str
    state: DatasetState
    task: DataTaskRead | None = Field(
        description="The task that creates its first version, until it is done."
    )
    licences: list[str] = Field(
        description="Distinct licenses of the rows: from the cards of imported hub datasets and the datasets "
        "that the rows were made from, or as set by PATCH. Empty if unknown."
    )
    source: DatasetOrigin
    head: str | None = Field(description="Version at the tip of main.")
    format: DataFormat | None
    format_reason: str | None = Field(description="One sentence on how the format was detected.")
    format_columns: dict[str, str] = Field(
        description="Columns mapped to the format's roles, e.g. prompt: question, answer: answer."
    )
    row_count: int
    splits: dict[str, int] = Field(description="Rows by split.")
    columns: list[ColumnRead]
    warnings: list[DatasetWarning]
    size_bytes: int = Field(description="Size of the rows as JSON, regardless of their size on disk.")
    created_at: datetime
    updated_at: datetime


class DatasetChange(BaseModel):
    """Changes to a dataset; its rows only change through versions."""

    model_config = ConfigDict(extra="forbid")

    name: Name | None = None
    description: Description | None = None
    licences: list[Licence] | None = Field(
        default=None,
        max_length=20,
        description="SPDX identifiers or names, e.g. apache-2.0; replaces all. Later imports add theirs.",
    )


class ImportCreate(BaseModel):
    """A dataset to import from a source."""

    model_config = ConfigDict(extra="forbid")

    name: Name | None = Field(default=None, description="Default: after the source.")
    description: Description = ""
    licences: list[Licence] = Field(
        default_factory=list,
        max_length=20,
        description="SPDX identifiers or names, e.g. apache-2.0; those of the source's card are added.",
    )
    source: ImportSource
    mixed: Mixed = Field(
        default="quarantine",
        description="For columns that mix numbers and text: use the first type, or convert all to text.",
    )


class ImportMore(BaseModel):
    """Rows for the next version of a dataset."""

    model_config = ConfigDict(extra="forbid")

    source: ImportSource
    mixed: Mixed = "quarantine"
    mode: Literal["replace", "append"] = "append"
    branch: RefName = "main"
    message: Description = ""


#: Characters of a message; a longer one is a file to upload.
_MAX_TEXT = 200_000
_MAX_ROWS = 100
RowText = Annotated[str, StringConstraints(max_length=_MAX_TEXT, pattern=NO_NUL)]


class RowFunction(BaseModel):
    """The function that a call names."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=NO_NUL)]
    arguments: RowText


class RowCall(BaseModel):
    """A tool call."""

    model_config = ConfigDict(extra="forbid")

    id: str = Field(max_length=256, pattern=NO_NUL)
    type: Literal["function"] = "function"
    function: RowFunction


class RowMessage(BaseModel):
    """A message of a row, as chat completions take it."""

    model_config = ConfigDict(extra="forbid")

    role: Literal["system", "user", "assistant", "tool"]
    content: RowText | None = None
    tool_calls: Annotated[list[RowCall], Field(min_length=1, max_length=128)] | None = None
    tool_call_id: Annotated[str, Field(max_length=256, pattern=NO_NUL)] | None = None


RowMessages = Annotated[list[RowMessage], Field(min_length=1, max_length=400)]


class ConversationRow(BaseModel):
    """A conversation to learn from (SFT)."""

    model_config = ConfigDict(extra="forbid")

    messages: RowMessages = Field(description="The last one is the assistant's.")
    tools: Annotated[list[dict[str, Any]], Field(max_length=128)] | None = Field(
        default=None, description="Functions that the assistant could call."
    )

    @model_validator(mode="after")
    def _ends_with_the_assistant(self) -> Self:
        if self.messages[-1].role != "assistant":
            raise ValueError("the last message must be the assistant's")
        return self


class PairRow(BaseModel):
    """A better and a worse response to the same conversation (DPO)."""

    model_config = ConfigDict(extra="forbid")

    prompt: RowMessages
    chosen: RowMessages
    rejected: RowMessages

    @model_validator(mode="after")
    def _differ(self) -> Self:
        if self.chosen == self.rejected:
            raise ValueError("chosen and rejected are the same")
        return self


GivenRow = ConversationRow | PairRow
#: All of one kind.
GivenRows = (
    Annotated[list[ConversationRow], Field(min_length=1, max_length=_MAX_ROWS)]
    | Annotated[list[PairRow], Field(min_length=1, max_length=_MAX_ROWS)]
)


class RowsCreate(BaseModel):
    """A dataset of given rows."""

    model_config = ConfigDict(extra="forbid")

    name: Name
    description: Description = ""
    rows: GivenRows


class RowsAdd(BaseModel):
    """Rows for the next version of a dataset."""

    model_config = ConfigDict(extra="forbid")

    rows: GivenRows
    branch: RefName = "main"
    message: Description = ""


class CutValue(BaseModel):
    """A value that is truncated on a page; read the row alone or download it for the full value."""

    row: int = Field(description="Index among the returned rows, from 0.")
    column: str


CutValues = Annotated[
    list[CutValue],
    Field(
        description="Values that are not whole: all rows of an answer together have about 4 million "
        "characters. Texts end in ' … [cut]' then, lists end earlier."
    ),
]


class DatasetRows(BaseModel):
    """A window of rows, in their order."""

    version: str
    split: str
    offset: int
    row_count: int = Field(description="Rows of the split.")
    columns: list[ColumnRead]
    rows: list[dict[str, Any]]
    cut: CutValues = []


class RowSearch(BaseModel):
    """Rows to look for: all conditions hold, and one of the row's texts contains ``text``."""

    model_config = ConfigDict(extra="forbid")

    version: Revision | None = None
    split: str | None = None
    conditions: list[Condition] = Field(default_factory=list, max_length=20)
    text: Annotated[str, Field(max_length=1000, pattern=NO_NUL)] | None = None
    cursor: int = Field(default=0, ge=0, le=2**62, description="Position to continue from.")
    limit: int = Field(default=50, ge=1, le=200)


class FoundRows(BaseModel):
    """Rows that fit. A call looks for about a second; ``next_cursor`` says where the next one goes on."""

    version: str
    split: str
    row_count: int = Field(description="Rows of the split.")
    columns: list[ColumnRead]
    rows: list[dict[str, Any]]
    cut: CutValues = []
    positions: list[int]
    looked_at: int
    next_cursor: int | None = Field(description="Null at the end of the split.")


class QuarantinedRow(BaseModel):
    """A rejected row."""

    source: str = Field(description="The file.")
    line: int | None
    row: int | None
    column: str | None
    code: str
    reason: str
    raw: str | None = Field(description="The beginning of its content.")


class QuarantineRead(BaseModel):
    """A page of rows rejected by imports."""

    offset: int
    row_count: int
    reasons: dict[str, int] = Field(description="Rows by reason code.")
    rows: list[QuarantinedRow]


class StatisticsRead(BaseModel):
    """Statistics of a version. Without a model there are no lengths in tokens."""

    version: str
    model: str | None
    statistics: Statistics | None = Field(description="Null until they were computed.")
    task: DataTaskRead | None = Field(description="The most recent computation.")


class StatisticsCreate(BaseModel):
    """Statistics to compute."""

    model_config = ConfigDict(extra="forbid")

    version: Revision | None = None
    model: str | None = Field(default=None, description="Model whose tokenizer counts (mdl_...).")


class TokensCreate(BaseModel):
    """Rows to show as tokenized for training."""

    model_config = ConfigDict(extra="forbid")

    version: Revision | None = None
    split: str | None = None
    model: str = Field(description="Model whose chat template and tokenizer are used (mdl_...).")
    offset: int = Field(default=0, ge=0, le=2**62)
    limit: int = Field(default=20, ge=1, le=50)
    max_length: int | None = Field(
        default=None, ge=2, le=2**31, description="Longest sequence in tokens; null: nothing is cut."
    )


class VersionRead(BaseModel):
    """A version in the history."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    dataset: str
    number: int = Field(description="1, 2, 3 ... over all branches.")
    parents: list[str]
    message: str
    author: str
    tree: str = Field(description="Hash of the rows: the same rows, the same hash.")
    splits: dict[str, int]
    row_count: int
    size_bytes: int
    origin: Literal["import", "pipeline", "generate", "rollback"]
    task: str | None = Field(description="The task that made it.")
    branches: list[str] = Field(description="Branches whose tip it is.")
    tags: list[str]
    created_at: datetime


class VersionUse(BaseModel):
    """A user of a version."""

    kind: Literal["job", "task", "dry_run", "model", "pipeline", "sweep"]
    id: str
    name: str | None
    state: str | None
    is_unfinished: bool


class VersionDetail(VersionRead):
    """A version with its contents and provenance."""

    format: DataFormat
    format_columns: dict[str, str]
    columns: list[ColumnRead]
    provenance: dict[str, Any]
    uses: list[VersionUse]


class RefRead(BaseModel):
    """A branch or a tag."""

    name: str
    version: str
    moved_at: datetime


class RefsRead(BaseModel):
    """All names of versions of a dataset."""

    branches: list[RefRead]
    tags: list[RefRead]


class RefCreate(BaseModel):
    """A name for a version."""

    model_config = ConfigDict(extra="forbid")

    name: RefName
    version: Revision


class RollBack(BaseModel):
    """A version to restore on a branch; later versions stay in the history."""

    model_config = ConfigDict(extra="forbid")

    version: Revision
    branch: RefName = "main"
    message: Description = ""


class DiffCreate(BaseModel):
    """What changed from ``before`` to ``after``."""

    model_config = ConfigDict(extra="forbid")

    before: Revision
    after: Revision
    key: str | None = Field(
        default=None,
        max_length=200,
        description="Key column; if given, changed rows are paired.",
    )


class ColumnChangeRead(BaseModel):
    """A column whose type changed; null if there is no such column."""

    name: str
    before: str | None
    after: str | None


class DiffRead(BaseModel):
    """The difference between two versions, once computed."""

    before: str
    after: str
    key: str | None
    task: DataTaskRead | None = Field(description="The computation; null where none was needed.")
    total: Counts | None
    splits: dict[str, Counts] | None
    columns: list[ColumnChangeRead] | None
    statistics_before: Statistics | None
    statistics_after: Statistics | None


class DiffRow(BaseModel):
    """A changed row, before and after; null if added or removed."""

    before: dict[str, Any] | None
    after: dict[str, Any] | None


class DiffRows(BaseModel):
    """A window of rows that differ."""

    split: str
    kind: Literal["added", "removed", "changed"]
    offset: int
    row_count: int
    rows: list[DiffRow]
