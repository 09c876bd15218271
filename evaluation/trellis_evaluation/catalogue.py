"""The catalogue of benchmarks: what each measures, and where its files come from.

One YAML file a benchmark in ``benchmarks/``. Revisions of the hub's repositories are pinned: the same rows,
the same scores.
"""

from functools import cache
from pathlib import Path
from typing import Literal, Self

import yaml
from pydantic import Field, model_validator
from trellis_contracts.recipe import Strict, Text

_FOLDER = Path(__file__).parent / "benchmarks"


class UnknownBenchmark(LookupError):
    """The catalogue has no benchmark of this name."""


class Part(Strict):
    """Files of one part, in the order of their rows."""

    #: Paths in the hub's repository, and how many rows they hold together.
    files: list[str] = Field(min_length=1)
    rows: int = Field(ge=1)
    #: SHA-256 of the hub's files, where it is known.
    sha256: dict[str, str] = Field(default_factory=dict)
    #: Paths in a folder that stands for the hub; empty where it has no such part.
    mirror: list[str] = Field(default_factory=list)
    #: Rows there, where they are others than the hub's.
    mirror_rows: int | None = Field(default=None, ge=1)


class CatalogueBenchmark(Strict):
    """A benchmark as the catalogue describes it."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]{0,63}$")
    title: Text
    description: Text
    #: The headline first.
    metrics: list[str] = Field(min_length=1)
    #: What scores are broken down by.
    group_kinds: list[str] = Field(default_factory=list)
    #: All names of groups that problems can be chosen by.
    groups: dict[str, list[str]] = Field(default_factory=dict)
    #: Columns that hold the name of a group; the first that a row has counts.
    group_columns: dict[str, list[str]] = Field(default_factory=dict)
    needs: Literal["generate", "loglikelihood"] = "generate"
    #: Solved examples before each problem, with and without the chat template.
    default_shots: int = Field(ge=0)
    default_chat_shots: int = Field(ge=0)
    default_max_tokens: int = Field(ge=1)
    #: It runs what the model writes, which needs a sandbox.
    runs_code: bool = False
    paper: str | None = None
    license: str | None = None
    repo_id: str
    #: A commit.
    revision: str = Field(pattern=r"^[0-9a-f]{40}$")
    #: The part that is measured.
    measured: str = "test"
    parts: dict[str, Part] = Field(min_length=1)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.measured not in self.parts:
            raise ValueError(f"{self.name} has no part '{self.measured}'")
        if unknown := self.group_columns.keys() - set(self.group_kinds):
            raise ValueError(f"{self.name} has columns of groups that it does not know: {unknown}")
        return self


def list_benchmarks() -> list[CatalogueBenchmark]:
    """List all benchmarks, by name."""
    return list(_read().values())


def get_benchmark(name: str) -> CatalogueBenchmark:
    """Return the benchmark of that name; raise ``UnknownBenchmark`` if there is none."""
    found = _read().get(name)
    if found is None:
        raise UnknownBenchmark(f"There is no benchmark '{name}' in the catalogue.")
    return found


@cache
def _read() -> dict[str, CatalogueBenchmark]:
    entries = [
        CatalogueBenchmark.model_validate(yaml.safe_load(path.read_text("utf-8")))
        for path in sorted(_FOLDER.glob("*.yaml"))
    ]
    return {entry.name: entry for entry in entries}
