"""What uses what, asked by domains that delete things or show their users, answered by those that use them.

No domain imports its users: each kind of thing has a list of finders, one for each domain that refers to
such things. ``trellis_api.wiring`` registers all of them at once, and every process that asks imports it.
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, NamedTuple, TypeVar

from sqlalchemy import ColumnElement
from sqlmodel import Session

Key = TypeVar("Key", bound=Hashable)
Thing = TypeVar("Thing")
UserKind = Literal[
    "job",
    "evaluation",
    "dry_run",
    "task",
    "model",
    "transfer",
    "alias",
    "pipeline",
    "sweep",
    "endpoint",
    "fine_tuning_file",
]
#: Finished users of a kind that are listed, newest first; unfinished ones all are.
MOST_FINISHED = 100


@dataclass(frozen=True)
class Use:
    """One user of a thing."""

    kind: UserKind
    id: str
    name: str | None = None
    state: str | None = None
    is_unfinished: bool = True

    @property
    def label(self) -> str:
        """Return what messages call it."""
        return self.name or self.id


#: For some things, the users of each; what has none may be left out.
Finder = Callable[[Session, Collection[Key]], Mapping[Key, Iterable[Use]]]


class UsersUnknown(RuntimeError):
    """Nobody was registered: that is no answer, and never means that a thing is unused."""


class Used(Generic[Key]):
    """A kind of thing that others use."""

    def __init__(self, noun: str) -> None:
        self.noun = noun
        self._finders: dict[str, Finder[Key]] = {}

    @property
    def users(self) -> tuple[str, ...]:
        """Return the domains that are asked, in their order."""
        return tuple(self._finders)

    def register(self, domain: str, finder: Finder[Key]) -> None:
        """Add a domain; users are listed in the order of the registrations."""
        if domain in self._finders:
            raise ValueError(f"{domain} is registered as a user of {self.noun}s already.")
        self._finders[domain] = finder

    def find(self, session: Session, key: Key) -> list[Use]:
        """List the users of one thing."""
        return self.map(session, [key])[key]

    def map(self, session: Session, keys: Collection[Key]) -> dict[Key, list[Use]]:
        """List the users of several things; whoever uses one twice is listed once."""
        if not self._finders:
            raise UsersUnknown(f"No users of a {self.noun} are registered: import trellis_api.wiring.")
        found: dict[Key, dict[tuple[str, str], Use]] = {key: {} for key in keys}
        for finder in self._finders.values():
            for key, uses in finder(session, keys).items():
                for use in uses:
                    found[key].setdefault((use.kind, use.id), use)
        return {key: list(uses.values()) for key, uses in found.items()}


class VersionKey(NamedTuple):
    """A version of a dataset."""

    dataset_id: str
    id: str


class RefKey(NamedTuple):
    """A branch or tag of a dataset."""

    dataset_id: str
    name: str


#: Of these kinds, unfinished users: what still needs the thing.
DATASETS: Used[str] = Used("dataset")
MODELS: Used[str] = Used("model")
REWARD_FILES: Used[str] = Used("reward file")
#: By name.
BENCHMARKS: Used[str] = Used("benchmark")
ENVIRONMENTS: Used[str] = Used("environment")
WORKFLOWS: Used[str] = Used("workflow")
UPLOADS: Used[str] = Used("upload")
#: Of what will read the version that it stands on by then.
REFS: Used[RefKey] = Used("branch or tag of a dataset")
#: Finished users too: what has read a version is told of.
VERSIONS: Used[VersionKey] = Used("version of a dataset")
KINDS: tuple[Used[Any], ...] = (
    DATASETS, MODELS, REWARD_FILES, BENCHMARKS, ENVIRONMENTS, WORKFLOWS, UPLOADS, REFS, VERSIONS,
)  # fmt: skip


def one_by_one(find: Callable[[Session, Key], Iterable[Use]]) -> Finder[Key]:
    """Make a finder of a function that looks for the users of one thing."""

    def find_all(session: Session, keys: Collection[Key]) -> dict[Key, list[Use]]:
        return {key: list(find(session, key)) for key in keys}

    return find_all


def pick(
    users: Iterable[tuple[Use, Thing]], keys: Collection[Key], has: Callable[[Thing, Key], bool]
) -> dict[Key, list[Use]]:
    """Map each key to the users whose thing has it, where all of them were read at once."""
    known = list(users)
    return {key: [use for use, thing in known if has(thing, key)] for key in keys}


def list_labels(uses: Iterable[Use]) -> list[str]:
    """List the names of users in their alphabetical order, each once."""
    return sorted({use.label for use in uses})


def list_newest(session: Session, query: Any, is_open: ColumnElement[bool]) -> list[Any]:
    """List all rows of a query that are open, and the newest of the others."""
    rest = session.exec(query.where(~is_open).limit(MOST_FINISHED))
    return [*session.exec(query.where(is_open)), *rest]
