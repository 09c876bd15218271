"""The table of installed benchmarks."""

from datetime import datetime

from sqlalchemy import BigInteger
from sqlmodel import Field, SQLModel

from trellis_api.core.columns import JsonColumn, UtcDateTime, utc_now


class BenchmarkInstall(SQLModel, table=True):
    """The files of a benchmark of the catalogue: here, on their way, or not to be had."""

    __tablename__ = "benchmark_installs"

    name: str = Field(primary_key=True, max_length=64)
    state: str = Field(max_length=16, index=True)
    state_reason: str | None = Field(default=None, max_length=2000)
    #: When the state last changed; an installation that was lost is recognised by it.
    state_changed_at: datetime = Field(default_factory=utc_now, sa_type=UtcDateTime)
    #: Facts of the files: None until they are here.
    revision: str | None = Field(default=None, max_length=120)
    sha256: str | None = Field(default=None, max_length=64)
    size_bytes: int | None = Field(default=None, sa_type=BigInteger)
    #: By part: {"test": 1319}.
    rows: dict[str, int] = Field(default_factory=dict, sa_type=JsonColumn)
    #: Problems of the measured part by kind of group and name: {"subject": {"astronomy": 152}}.
    groups: dict[str, dict[str, int]] = Field(default_factory=dict, sa_type=JsonColumn)
    installed_at: datetime | None = Field(default=None, sa_type=UtcDateTime)
