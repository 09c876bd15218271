"""Environments of agents: the kinds that can be made, and what trying a tool by hand answers."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Literal

from pydantic import Field

from trellis_contracts.recipe import Parameter, Strict, Text

#: Of the commands of ``trellis_train.agents.environments``: what was asked for cannot be done, and the last
#: line of standard error says why.
EXIT_BAD_REQUEST = 65  # EX_DATAERR
#: The line before that one says which error it is, as a code; ``BAD_REQUEST`` where none fits better.
CODE_PREFIX, BAD_REQUEST = "code: ", "bad_request"
#: In the folder of an environment; it appears last, when all else is there.
MANIFEST_FILE = "environment.json"
#: Between the name of a dataset and that of a split, in the manifest's ``datasets``: rows of another dataset
#: than the environment's main one.
DATASET_SEPARATOR = "/"


class EnvironmentState(StrEnum):
    """Whether an environment can be used."""

    QUEUED = "queued"
    MAKING = "making"
    READY = "ready"
    FAILED = "failed"


class ToolCallState(StrEnum):
    """Where a call by hand is in its life. One that a tool refuses has succeeded, with an error."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


#: Before the id of an upload, and before the name of a dataset on the hub, where a parameter names files.
UPLOAD_PREFIX, HUB_PREFIX = "upload:", "hub:"
#: What a parameter names: an SQLite database, files of rows (also of the hub), or a file of another kind.
SourceKind = Literal["database", "rows", "file"]


class EnvironmentKind(Strict):
    """An environment kind: texts for the form and its parameters."""

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$")
    title: Text
    help: Text
    #: Of the types int, float, bool, str and choice.
    parameters: list[Parameter] = Field(default_factory=list)
    #: Parameters that name files: a path below the data root, ``upload:`` and an id, or of rows
    #: ``hub:owner/name``. They have to be given, those aside that are optional.
    sources: dict[str, SourceKind] = Field(default_factory=dict)
    optional_sources: list[str] = Field(default_factory=list)
    #: Groups of optional sources, of each of which exactly one has to be given.
    one_of: list[list[str]] = Field(default_factory=list)

    def wanted_sources(self, parameters: Mapping[str, Any]) -> dict[str, SourceKind]:
        """Return the sources that must exist: optional ones only if a parameter names them."""
        return {
            name: kind
            for name, kind in self.sources.items()
            if name not in self.optional_sources or parameters.get(name)
        }


class CallAnswer(Strict):
    """What ``call`` prints: what the model would have been shown."""

    result: Any
    #: Rows or items of the result, where a count means something.
    result_count: int | None = None
    #: Code of the failure (``DENIED``, ``TIMEOUT``, ``UNKNOWN_TOOL`` ...).
    error: str | None = None
    duration_s: float = Field(ge=0)
    ends_episode: bool = False
