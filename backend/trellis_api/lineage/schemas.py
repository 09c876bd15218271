"""Lineages of models and of datasets as clients read them."""

from typing import Literal

from pydantic import BaseModel, Field
from trellis_contracts.spec import ExportForm


class LineageNode(BaseModel):
    """A model, job, dataset, environment, evaluation or report in a lineage."""

    id: str
    kind: Literal["model", "job", "dataset", "environment", "evaluation", "report"]
    name: str | None
    exists: bool = Field(description="False where it was deleted.")
    recipe: str | None = Field(default=None, description="Of a job.")
    state: str | None = Field(default=None, description="Null for deleted objects and datasets.")
    form: ExportForm | None = Field(default=None, description="Of a model that was exported.")
    sha256: str | None = Field(
        default=None, description="Of a dataset's rows or an environment's files, then."
    )


class LineageEdge(BaseModel):
    """An edge of the lineage."""

    source: str
    target: str
    role: Literal["base", "data", "environment", "checkpoint", "measured", "report"] = Field(
        description="base: the model that a job starts from; data: what it learns from; environment: what "
        "its agent works in; checkpoint: what "
        "became a model; measured: the model, or a checkpoint of the job, by an evaluation; report: what an "
        "evaluation is told in."
    )
    step: int | None = Field(default=None, description="Of the checkpoint.")


class LineageRead(BaseModel):
    """All ancestors and descendants of a model."""

    model_id: str
    nodes: list[LineageNode]
    edges: list[LineageEdge]
    is_cut: bool = Field(description="Truncated: there are more nodes.")


class DataLineageNode(BaseModel):
    """A node in a dataset's lineage: source, version, run, job, model, evaluation or report."""

    id: str
    kind: Literal["source", "dataset", "version", "task", "job", "model", "evaluation", "report"]
    name: str | None
    exists: bool = True
    state: str | None = None
    dataset: str | None = Field(default=None, description="Of a version.")
    number: int | None = Field(default=None, description="Of a version.")
    row_count: int | None = Field(default=None, description="Of a version.")
    recipe: str | None = Field(
        default=None, description="Of a job; the pipeline's name of a task; the kind of a source."
    )


class DataLineageEdge(BaseModel):
    """An edge of the lineage."""

    source: str
    target: str
    role: Literal[
        "imported",
        "input",
        "made",
        "parent",
        "data",
        "validation",
        "model",
        "benchmark",
        "measured",
        "report",
    ]  # fmt: skip


class DataLineageRead(BaseModel):
    """From the sources of a dataset to what used it: jobs, models, evaluations and reports."""

    dataset: str
    nodes: list[DataLineageNode]
    edges: list[DataLineageEdge]
    is_cut: bool = Field(description="Truncated: there are more nodes.")
