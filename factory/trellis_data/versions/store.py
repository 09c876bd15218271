"""A store of versions: rows by the hash of their content, commits, branches and tags, as git has them.

Nothing of a version can be seen before its branch moves, which is one rename; what a killed process
left behind is not reachable and goes with the next ``collect_garbage``. Whoever keeps the names of versions
elsewhere (the platform: in its database) adds versions without any, and publishes them ``while writing``.
"""

import contextlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pydantic import ValidationError

from trellis_data.batching import read_tables
from trellis_data.layout import Layout
from trellis_data.pipeline.shards import conform, one_schema
from trellis_data.versions.chunking import cut_chunks
from trellis_data.versions.hashing import plain_schema
from trellis_data.versions.objects import DOCUMENT, Objects
from trellis_data.versions.records import (
    ChunkRef,
    Column,
    Commit,
    Provenance,
    Split,
    StoreProblem,
    Tree,
    Version,
    encode_schema,
)
from trellis_data.versions.refs import RefKind, Refs, check_name, locked

_FORMAT = "trellis store 1\n"
_BATCH_ROWS = 4096
#: About 100 bytes a chunk each.
_HELD_TREES = 32
MAIN = "main"


@dataclass(frozen=True)
class Entry:
    """What is said of a version when it is recorded."""

    message: str
    author: str
    layout: Layout
    provenance: Provenance = field(default_factory=Provenance)
    #: JSON of ``trellis_data.statistics``.
    statistics: Any = None


class Store:
    """Versions of datasets in a folder; branches and tags are those of one dataset."""

    def __init__(self, root: Path) -> None:
        """Open the store in ``root``; raises ``StoreProblem`` where there is none (``Store.create``)."""
        self.root = root
        self.objects = Objects(root)
        self.refs = Refs(root)
        try:
            if (root / "format").read_text() != _FORMAT:
                raise StoreProblem("store_unknown", f"{root} was made by another release of the platform.")
        except (FileNotFoundError, NotADirectoryError):
            raise StoreProblem("store_missing", f"{root} holds no versions.") from None
        # Trees never change, and browsing asks for the same one again and again.
        self.tree = lru_cache(maxsize=_HELD_TREES)(self._tree)

    @classmethod
    def create(cls, root: Path) -> "Store":
        """Open the store in ``root``, making it where there is none."""
        root.mkdir(parents=True, exist_ok=True)
        Objects(root).prepare()
        Refs(root).prepare()
        (root / "format").write_text(_FORMAT)
        return cls(root)

    # -- writing

    def record(
        self,
        splits: Mapping[str, Sequence[Path]],
        entry: Entry,
        *,
        branch: str = MAIN,
        head: str | None = None,
    ) -> Version:
        """Record the rows of Parquet files as the next version of a branch.

        ``head`` is the version that the caller has seen at the tip; another one there, also one that comes
        while rows are written, is "moved_meanwhile". Rows that are those of the tip make no new version.
        """
        with locked(self.root / "writing.lock", shared=True):
            tip = self.refs.get("branches", branch)
            if tip is None:
                self.refs.check_free("branches", branch)  # before anything is written
            if head is not None and tip != head:
                self.refs.move("branches", branch, expected=head, to=head)
            parents = [tip] if tip else []
            return self._advance(branch, tip, self._commit(parents, self._put_tree(splits, entry), entry))

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Hold off cleanup, so that a version can be added and then named safely."""
        with locked(self.root / "writing.lock", shared=True):
            yield

    def add_version(
        self, splits: Mapping[str, Sequence[Path]], entry: Entry, parents: Sequence[str] = ()
    ) -> Version:
        """Add a version that has no name yet; to be named while still ``writing``, or it is tidied away.

        Rows that are those of its only parent make no new version.
        """
        with self.writing():
            return self._commit(list(parents), self._put_tree(splits, entry), entry)

    def add_again(self, version: Version, entry: Entry, parents: Sequence[str]) -> Version:
        """Add a version like ``add_version``, with the rows of an existing version."""
        with self.writing():
            return self._commit(list(parents), version.commit.tree, entry)

    def roll_back(
        self, revision: str, *, branch: str = MAIN, author: str, message: str | None = None
    ) -> Version:
        """Create a version with the rows of an old one; the versions between stay in the history."""
        with locked(self.root / "writing.lock", shared=True):
            old, tip = self.version(revision), self.refs.get("branches", branch)
            entry = Entry(
                message or f"Roll back to {old.id[:12]}: {old.commit.message}"[:10_000],
                author,
                self.tree(old.commit.tree).layout,
                Provenance(inputs=[old.id]),
                self.statistics(old),
            )
            return self._advance(branch, tip, self._commit([tip] if tip else [], old.commit.tree, entry))

    def branch(self, name: str, revision: str) -> None:
        """Let a new branch begin at a version."""
        self._name("branches", name, revision)

    def tag(self, name: str, revision: str) -> None:
        """Give a version a name that stays."""
        self._name("tags", name, revision)

    def remove(self, kind: RefKind, name: str) -> None:
        """Remove a branch or tag; versions that nothing else leads to go with the next tidying."""
        found = self.refs.get(kind, name)
        if found is None:
            raise StoreProblem("version_unknown", f"There is no '{name}' among the {kind}.")
        self.refs.move(kind, name, expected=found, to=None)

    # -- reading

    def version(self, revision: str = MAIN) -> Version:
        """Return the version of a branch, a tag or an id (its first eight digits are enough)."""
        commit_id = self._resolve(revision)
        return self._version(commit_id)

    def history(self, revision: str = MAIN) -> Iterator[Version]:
        """Yield a version and those before it, newest first."""
        waiting, seen = [self._resolve(revision)], set[str]()
        while waiting:
            commit_id = waiting.pop(0)
            if commit_id not in seen:
                seen.add(commit_id)
                found = self._version(commit_id)
                waiting += found.commit.parents
                yield found

    def statistics(self, version: Version) -> Any:
        """Return the statistics of a version, or None."""
        return self.objects.document(version.commit.statistics) if version.commit.statistics else None

    def _version(self, commit_id: str) -> Version:
        try:
            return Version(commit_id, Commit.model_validate(self.objects.document(commit_id)))
        except ValidationError:
            raise StoreProblem("version_unknown", f"{commit_id} is no version.") from None

    def _tree(self, tree_id: str) -> Tree:
        return Tree.model_validate(self.objects.document(tree_id))

    def _resolve(self, revision: str) -> str:
        is_id = len(revision) >= 8 and set(revision) <= set("0123456789abcdef")
        for kind in ("branches", "tags"):
            found = self.refs.get(kind, revision) if revision else None
            if found:
                return found
        if is_id and self.objects.path(revision, DOCUMENT).exists():
            return revision
        if is_id:
            tips = [*self.refs.all("branches").values(), *self.refs.all("tags").values()]
            known = {each.id for tip in tips for each in self.history(tip) if each.id.startswith(revision)}
            if len(known) == 1:
                return known.pop()
            if known:
                raise StoreProblem("version_ambiguous", f"'{revision}' begins several ids; give more digits.")
        raise StoreProblem("version_unknown", f"There is no version '{revision}'.")

    # -- how a version comes about

    def _write(self, files: Iterable[Path], schema: pa.Schema) -> Split:
        chunks, size = [], 0
        for chunk in cut_chunks(_tables(files, schema)):
            chunks.append(ChunkRef(self.objects.put_chunk(chunk), chunk.table.num_rows))
            size += chunk.size_bytes
        return Split(rows=sum(each.rows for each in chunks), size_bytes=size, chunks=chunks)

    def _put_tree(self, splits: Mapping[str, Sequence[Path]], entry: Entry) -> str:
        schema = _schema(splits)
        tree = Tree(
            columns=[Column(name=each.name, type=str(each.type)) for each in schema],
            schema_ipc=encode_schema(schema),
            format=entry.layout.format,
            roles=entry.layout.columns,
            splits={name: self._write(files, schema) for name, files in sorted(splits.items())},
        )
        return self.objects.put_document(tree.model_dump(mode="json"))

    def _commit(self, parents: list[str], tree_id: str, entry: Entry) -> Version:
        """Write a commit to disk; return its parent instead if that has the same rows."""
        before = [self.version(parent) for parent in parents]
        if len(before) == 1 and before[0].commit.tree == tree_id:
            return before[0]
        commit = Commit(
            parents=parents,
            message=entry.message,
            author=entry.author,
            time=datetime.now(UTC).isoformat(timespec="microseconds"),
            tree=tree_id,
            rows={name: split.rows for name, split in self.tree(tree_id).splits.items()},
            statistics=None if entry.statistics is None else self.objects.put_document(entry.statistics),
            provenance=entry.provenance,
        )
        commit_id = self.objects.put_document(commit.model_dump(mode="json"))
        self.objects.sync()
        return Version(commit_id, commit)

    def _advance(self, branch: str, tip: str | None, version: Version) -> Version:
        if version.id != tip:
            self.refs.move("branches", branch, expected=tip, to=version.id)
        return version

    def _name(self, kind: RefKind, name: str, revision: str) -> None:
        if self.refs.get(kind, name):
            raise StoreProblem("name_taken", f"'{name}' is taken; remove it first or choose another name.")
        with locked(self.root / "writing.lock", shared=True):
            self.refs.move(kind, name, expected=None, to=self.version(revision).id)


def _schema(splits: Mapping[str, Sequence[Path]]) -> pa.Schema:
    for name in splits:
        check_name(name)
    files = [path for paths in splits.values() for path in paths]
    if not files:
        raise StoreProblem("no_rows", "There is no file to record.")
    return plain_schema(one_schema([pq.read_schema(path) for path in files], [path.name for path in files]))


def _tables(files: Iterable[Path], schema: pa.Schema) -> Iterator[pa.Table]:
    for path in files:
        with pq.ParquetFile(path) as file:
            for table in read_tables(file, _BATCH_ROWS):
                yield conform(table, schema)
