"""Benchmarks as clients see them."""

from datetime import datetime
from enum import StrEnum
from typing import Literal

from pydantic import BaseModel, Field
from trellis_contracts.recipe import Text


class InstallState(StrEnum):
    """Whether the files of a benchmark are here."""

    ABSENT = "absent"
    PENDING = "pending"
    INSTALLING = "installing"
    READY = "ready"
    FAILED = "failed"


class BenchmarkSource(BaseModel):
    """Where the files come from."""

    repo_id: str
    revision: str = Field(description="The commit to download.")
    license: str | None = None


class BenchmarkRead(BaseModel):
    """A benchmark of the catalogue."""

    name: str
    title: Text
    description: Text
    metrics: list[str] = Field(description="The headline first.")
    group_kinds: list[str] = Field(description="Score groups: level, type, subject.")
    groups: dict[str, list[str]] = Field(description="Names by kind of group.")
    needs: Literal["generate", "loglikelihood"]
    default_shots: int
    default_max_tokens: int
    runs_code: bool = Field(description="Runs model-generated code, which needs a sandbox.")
    unavailable: Text | None = Field(description="Why it cannot be used on this platform.")
    paper: str | None = Field(description="Address of the paper.")
    source: BenchmarkSource
    state: InstallState
    state_reason: str | None = Field(description="Why the download failed.")
    revision: str | None = Field(description="Commit of the downloaded files.")
    sha256: str | None
    size_bytes: int | None
    rows: dict[str, int] = Field(description="Rows by split: of the downloaded files, else of the catalogue.")
    installed_at: datetime | None
    can_install: bool


class BenchmarksRead(BaseModel):
    """The catalogue."""

    items: list[BenchmarkRead]
