"""Reads the samples of a benchmark: pages, filters, search, what changed against another file."""

import json
import sqlite3
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError
from trellis_contracts.evaluation import Sample, Verdict, VerdictCounts

from trellis_evaluation.problem import EvaluationProblem
from trellis_evaluation.samples.changes import ChangeCounts, Changed, Changes, find_changes
from trellis_evaluation.samples.format import (
    APPLICATION_ID,
    DTYPES,
    FORMAT,
    NUMBERS,
    VERDICTS,
    Codec,
    index_query,
    key_hash,
    sample_id,
)
from trellis_evaluation.samples.writing import write_store

__all__ = ["ChangeCounts", "Changed", "Filters", "Page", "SampleStore", "open_store", "write_store"]

#: Of one page's search, in texts that are read. The cursor goes on from there.
SEARCH_SECONDS = 0.06
#: Up to so many samples are read one by one rather than looked up in the index.
_READ_RATHER = 1000


@dataclass(frozen=True)
class Filters:
    """Which samples are wanted; all conditions hold together."""

    #: Any of these; none: every verdict.
    verdicts: tuple[Verdict, ...] = ()
    #: Kind and name, as in ``Sample.groups``.
    group: tuple[str, str] | None = None
    #: In the problem's key, answer, extracted answer, reference, error or prompt; case does not matter.
    search: str | None = None
    #: Against the other file: better or worse here than there, or any difference.
    changed: Changed | None = None


@dataclass(frozen=True)
class Page:
    """Some samples in the order in which problems were drawn."""

    samples: list[Sample]
    #: Where to go on; None at the end. A search may hand one out with few samples or none.
    next_cursor: str | None
    #: Samples that fit, a search aside.
    fitting: int


class SampleStore:
    """One file of samples, read only. One thread at a time."""

    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection, self._path = connection, path

    def __enter__(self) -> "SampleStore":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._connection.close()

    def __len__(self) -> int:
        return self._total

    def page(
        self,
        filters: Filters | None = None,
        *,
        cursor: str | None = None,
        limit: int = 50,
        against: "SampleStore | None" = None,
    ) -> Page:
        """Return the next ``limit`` matching samples after ``cursor``; ``changed`` requires ``against``."""
        filters = filters or Filters()
        with self._told():
            fitting = self._fitting(filters, against)
            after = -1 if cursor is None else _read_cursor(cursor)
            wanted = (filters.search or "").strip().lower()
            places = None if fitting is None else np.flatnonzero(fitting)
            total = len(self) if places is None else len(places)
            if not wanted:
                chosen = self._next_ids(places, after, limit + 1)
                more = str(chosen[limit - 1]) if len(chosen) > limit else None
                return Page(list(self._read(chosen[:limit])), more, total)
            return self._found_page(places, after, limit, total, wanted)

    def get(self, position: int, number: int = 0) -> Sample:
        """Return one sample; raise ``EvaluationProblem`` if there is none."""
        with self._told():
            found = list(self._read([sample_id(position, number)])) if number < NUMBERS else []
        if not found:
            raise EvaluationProblem(
                "sample_missing", f"There is no generation {number} of problem {position}."
            )
        return found[0]

    def find(self, key: str, number: int = 0) -> Sample | None:
        """Find the generation with this number for the problem of that key, wherever it is in this file."""
        with self._told():
            hits = self.ids[self.keys == np.uint64(key_hash(key))]
            hits = hits[hits % NUMBERS == number]
            return next((each for each in self._read(hits.tolist()) if each.key == key), None)

    def samples(self) -> Iterator[Sample]:
        """Yield all samples, in order."""
        with self._told():
            for (body,) in self._connection.execute("select body from samples order by id"):
                yield self._codec.decode(body)

    def counts(self) -> VerdictCounts:
        """Count the samples by verdict."""
        with self._told():
            found = np.bincount(self.verdicts, minlength=len(VERDICTS)).tolist()
        return VerdictCounts(total=len(self), **dict(zip(VERDICTS, found, strict=True)))

    def groups(self) -> dict[str, dict[str, int]]:
        """Count the samples by kind and name of group."""
        with self._told():
            return {
                kind: {name: count for name, (_, count) in names.items()}
                for kind, names in self._groups.items()
            }

    def changes(self, against: "SampleStore", filters: Filters | None = None) -> ChangeCounts:
        """Count the samples that differ from another file's: all, or those that match without the search."""
        with self._told():
            among = self._fitting(filters, None) if filters else None
            return self._changes(against).counts(among)

    def problem_scores(self) -> tuple[NDArray[np.uint64], NDArray[np.float64]]:
        """Return the sorted hashes of the problems' keys, equal in every file, and their mean scores."""
        with self._told():
            keys, where = np.unique(self.keys, return_inverse=True)
            return keys, np.bincount(where, weights=self.scores) / np.bincount(where)

    # -- parts of the file

    @cached_property
    def ids(self) -> NDArray[np.int64]:
        """Of all samples, in order; 8 MB for a million."""
        return self._whole_column("id")

    @cached_property
    def verdicts(self) -> NDArray[np.uint8]:
        """Of all samples, as places in ``VERDICTS``."""
        return self._whole_column("verdict")

    @cached_property
    def scores(self) -> NDArray[np.float64]:
        """Of all samples, under the headline metric."""
        return self._whole_column("score")

    @cached_property
    def keys(self) -> NDArray[np.uint64]:
        """Of all samples, hashes of their problems' keys."""
        return self._whole_column("key")

    @cached_property
    def _total(self) -> int:
        with self._told():
            return int(self._fact("total"))

    @cached_property
    def _codec(self) -> Codec:
        return Codec(self._fact("dictionary"), self._fact("prompt").decode())

    @cached_property
    def _groups(self) -> dict[str, dict[str, list[int]]]:
        return dict(json.loads(self._fact("groups")))

    def _fact(self, name: str) -> bytes:
        return self._blob("select value from facts where name = ?", name)

    def _whole_column(self, name: str) -> NDArray[Any]:
        with self._told():
            column = self._column(name)
        if len(column) != len(self):
            raise _damaged(self._path, f"'{name}' has {len(column)} numbers of {len(self)}")
        return column

    def _column(self, name: str) -> NDArray[Any]:
        data = self._blob("select data from columns where name = ?", name)
        return np.frombuffer(data, dtype=DTYPES[name.split("/")[0]])

    def _blob(self, query: str, name: str) -> bytes:
        row = self._connection.execute(query, (name,)).fetchone()
        if row is None:
            raise _damaged(self._path, f"'{name}' is missing")
        data: bytes = row[0]
        return data

    # -- filters

    def _fitting(self, filters: Filters, against: "SampleStore | None") -> NDArray[np.bool_] | None:
        """Mark the samples that match, ignoring the search; None for all."""
        masks = []
        if filters.verdicts:
            wanted = np.array([verdict in filters.verdicts for verdict in VERDICTS])
            masks.append(wanted[self.verdicts])
        if filters.group:
            kind, name = filters.group
            mask = np.zeros(len(self), dtype=bool)
            if name in self._groups.get(kind, {}):
                mask[self._column(f"group/{self._groups[kind][name][0]}")] = True
            masks.append(mask)
        if filters.changed:
            if against is None:
                raise EvaluationProblem(
                    "against_missing", "What changed needs an evaluation to compare with."
                )
            masks.append(self._changes(against).mask(filters.changed))
        return np.logical_and.reduce(masks) if masks else None

    def _changes(self, against: "SampleStore") -> Changes:
        return find_changes(self, against)

    def _next_ids(self, places: NDArray[Any] | None, after: int, limit: int) -> list[int]:
        if places is None:
            query = "select id from samples where id > ? order by id limit ?"
            return [row for (row,) in self._connection.execute(query, (after, limit))]
        ids = self.ids[places]
        start = int(np.searchsorted(ids, after, side="right"))
        return [int(row) for row in ids[start : start + limit]]

    # -- search

    def _found_page(
        self, places: NDArray[Any] | None, after: int, limit: int, total: int, wanted: str
    ) -> Page:
        """Read candidates until there are enough matches, none are left, or time is up."""
        found: list[Sample] = []
        ends = time.perf_counter() + SEARCH_SECONDS
        last = after
        for rows in self._candidates(places, after, wanted):
            for row in rows:
                if len(found) == limit or (last != after and time.perf_counter() > ends):
                    return Page(found, str(last), total)
                last = row
                for sample in self._read([row]):
                    if wanted in self._codec.searched_text(sample):
                        found.append(sample)
        return Page(found, None, total)

    def _candidates(self, places: NDArray[Any] | None, after: int, wanted: str) -> Iterator[list[int]]:
        """Yield ids after ``after`` of samples that may contain the text, some at a time."""
        query = index_query(wanted)
        ids = self.ids if places is None else self.ids[places]
        if query is None or len(ids) <= _READ_RATHER:
            yield ids[np.searchsorted(ids, after, side="right") :].tolist()
            return
        rows = self._connection.execute(
            "select rowid from texts where texts match ? and rowid > ? order by rowid", (query, after)
        )
        while batch := rows.fetchmany(500):
            mine = np.array(batch, dtype=np.int64)[:, 0]
            if places is not None:
                spots = np.minimum(np.searchsorted(ids, mine), len(ids) - 1)
                mine = mine[ids[spots] == mine]
            yield mine.tolist()

    def _read(self, ids: list[int]) -> Iterator[Sample]:
        """Read the samples of these ids, in their order; missing ones are left out."""
        for row in ids:
            found = self._connection.execute("select body from samples where id = ?", (row,)).fetchone()
            if found is not None:
                yield self._codec.decode(found[0])

    @contextmanager
    def _told(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.DatabaseError, zlib.error, ValidationError, UnicodeDecodeError) as error:
            raise _damaged(self._path, str(error)) from error


def open_store(path: Path) -> SampleStore:
    """Open a finished benchmark's samples; raise ``EvaluationProblem`` if the file is missing or damaged."""
    if not path.is_file():
        raise EvaluationProblem(
            "samples_missing",
            f"There are no samples in {path.name}: the benchmark is not done, or its files were deleted.",
        )
    # Finished files never change: SQLite then needs no locks and writes nothing beside them.
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?immutable=1", uri=True, check_same_thread=False)
    try:
        kind = connection.execute("pragma application_id").fetchone()[0]
        version = connection.execute("pragma user_version").fetchone()[0]
    except sqlite3.DatabaseError as error:
        connection.close()
        raise _damaged(path, str(error)) from error
    if kind != APPLICATION_ID or version != FORMAT:
        connection.close()
        raise EvaluationProblem(
            "samples_format", f"{path.name} holds no samples of this version; run the evaluation again."
        )
    return SampleStore(connection, path)


def _damaged(path: Path, why: str) -> EvaluationProblem:
    return EvaluationProblem(
        "samples_damaged", f"The samples in {path.name} cannot be read ({why}); run the evaluation again."
    )


def _read_cursor(cursor: str) -> int:
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 18:
        raise EvaluationProblem("cursor_invalid", "The cursor is not one of these samples' pages.")
    return int(cursor)
