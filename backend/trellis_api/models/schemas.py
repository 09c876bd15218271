"""Models as clients see them."""

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator
from trellis_contracts.spec import ExportForm

from trellis_api.core.ids import id_pattern
from trellis_api.core.texts import Description, Licence, Name


class ModelState(StrEnum):
    """State of the weights."""

    PENDING = "pending"
    FETCHING = "fetching"
    READY = "ready"
    FAILED = "failed"


class ModelCause(StrEnum):
    """Why a model is not here, where that is more than a sentence."""

    CANCELLED = "cancelled"


CatalogueName = Annotated[str, StringConstraints(max_length=80, pattern=r"^[a-z0-9][a-z0-9.-]*$")]


class CatalogueSource(BaseModel):
    """An entry of the catalogue (``GET /models/catalogue``); fetched by a worker from its pinned origin."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["catalogue"] = "catalogue"
    name: CatalogueName


GivenLicence = Annotated[
    Licence | None,
    Field(description="License of the weights, e.g. apache-2.0; null: as the card in their folder says."),
]


class LocalSource(BaseModel):
    """A folder in the data root, used in place; or a GGUF file, which a worker converts."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["local"] = "local"
    path: Annotated[str, StringConstraints(min_length=1, max_length=1000, pattern=r"^[^\x00]+$")] = Field(
        description="Relative to the data root, e.g. models/starter or models/tiny.Q4_0.gguf."
    )
    licence: GivenLicence = None


HubName = Literal["huggingface", "modelscope"]


class HubSource(BaseModel):
    """A repository of a model hub; fetched by a worker."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["hub"] = "hub"
    hub: HubName = Field(default="huggingface", description="Which hub: Hugging Face or ModelScope.")
    repo_id: Annotated[
        str,
        StringConstraints(
            max_length=200, pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?$"
        ),
    ] = Field(description="owner/name.")
    revision: Annotated[str, StringConstraints(max_length=120, pattern=r"^[A-Za-z0-9][A-Za-z0-9._/-]*$")] = (
        Field(default="main", description="Branch, tag or commit; by default main, on ModelScope master.")
    )
    file: (
        Annotated[
            str,
            StringConstraints(
                max_length=300,
                pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*\.gguf$",
            ),
        ]
        | None
    ) = Field(
        default=None,
        description="A GGUF file of the repository, converted to safetensors. Without it, the repository's "
        "safetensors are taken.",
    )
    licence: GivenLicence = None

    @model_validator(mode="after")
    def _name_default_branch(self) -> Self:
        if self.hub == "modelscope" and "revision" not in self.model_fields_set:
            self.revision = "master"
        return self


class CheckpointSource(BaseModel):
    """A checkpoint of a job, kept when the job is deleted."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["checkpoint"] = "checkpoint"
    job_id: Annotated[str, StringConstraints(max_length=32, pattern=id_pattern("job"))]
    step: int = Field(ge=0, le=2**31 - 1)


class ExportSource(BaseModel):
    """Written by an export job; use ``POST /jobs/{id}/checkpoints/{step}/export`` instead."""

    model_config = ConfigDict(extra="forbid")

    kind: Literal["export"] = "export"
    job_id: str
    step: int
    form: ExportForm


NewModelOrigin = Annotated[
    CatalogueSource | LocalSource | HubSource | CheckpointSource, Field(discriminator="kind")
]
ModelOrigin = Annotated[
    CatalogueSource | LocalSource | HubSource | CheckpointSource | ExportSource, Field(discriminator="kind")
]


class FetchStage(StrEnum):
    """Phase of a model download."""

    DOWNLOADING = "downloading"
    CONVERTING = "converting"
    GENERATING = "generating"
    INSPECTING = "inspecting"


class FetchProgress(BaseModel):
    """Progress of a model download."""

    stage: FetchStage
    done_bytes: int | None = Field(default=None, description="Downloaded so far.")
    total_bytes: int | None = Field(default=None, description="Total download size, if known.")


class ModelCreate(BaseModel):
    """Register a model."""

    model_config = ConfigDict(extra="forbid")

    name: Name | None = Field(
        default=None, description="Required, except for an entry of the catalogue, which has a name."
    )
    description: Description = ""
    source: NewModelOrigin

    @model_validator(mode="after")
    def _take_name_of_the_entry(self) -> Self:
        if self.name is None:
            if not isinstance(self.source, CatalogueSource):
                raise ValueError("name is required for a model that is not from the catalogue")
            self.name = self.source.name
        return self

    @property
    def chosen_name(self) -> str:
        """The name that was given, else that of the catalogue's entry."""
        return self.name or ""


class ModelWarning(BaseModel):
    """A limitation of the model."""

    code: str = Field(description="chat_template_missing, tokenizer_missing ...")
    message: str


class Training(BaseModel):
    """One training: what it started from and learned from. Names stay when the things are deleted."""

    job_id: str | None = None
    job_name: str | None = None
    recipe: str | None = None
    step: int | None = None
    model_id: str | None = Field(default=None, description="The model that the training started from.")
    model_name: str | None = None
    dataset_id: str | None = None
    dataset_name: str | None = None
    dataset_version: str | None = Field(default=None, description="The version that it was trained on.")
    dataset_split: str | None = None
    dataset_sha256: str | None = Field(default=None, description="Hash of that version's rows.")
    environment_id: str | None = Field(default=None, description="The environment of its agent.")
    environment_name: str | None = None
    environment_sha256: str | None = Field(default=None, description="Hash of the environment's files.")


class Lineage(Training):
    """Where the weights come from; nulls for imported weights."""

    form: ExportForm | None = Field(default=None, description="adapter: needs its base model to be used.")
    export_job_id: str | None = Field(default=None, description="The job that wrote the files.")
    ancestors: list[Training] = Field(
        default_factory=list, description="Earlier training jobs, most recent first."
    )


class ModelRead(BaseModel):
    """A registered model. Facts about the weights are null until they are downloaded."""

    model_config = ConfigDict(from_attributes=True)

    id: str
    name: str
    description: str
    state: ModelState
    state_reason: str | None = Field(description="Why the download failed.")
    state_cause: ModelCause | None = Field(
        description="cancelled: somebody ended the download. `POST /models/{id}/retry` continues it."
    )
    progress: FetchProgress | None = Field(description="While it is downloaded.")
    source: ModelOrigin
    lineage: Lineage
    path: str | None = Field(description="Folder, relative to the data root.")
    architecture: str | None
    parameter_count: int | None
    dtype: str | None = Field(description="Type of most of the weights, e.g. bfloat16.")
    context_length: int | None = Field(description="Longest sequence, in tokens.")
    vocabulary_size: int | None
    has_chat_template: bool | None
    size_bytes: int | None
    sha256: str | None
    sha256_kind: Literal["content", "sampled"] | None = Field(
        description="content: every byte; sampled: sizes and evenly spaced blocks of large weight files."
    )
    warnings: list[ModelWarning]
    revision: str | None = Field(description="Commit that was fetched, for hub models.")
    created_at: datetime
