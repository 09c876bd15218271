"""Writes the samples of a finished benchmark into their file."""

import json
import os
import sqlite3
from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from trellis_contracts.evaluation import Sample

from trellis_evaluation.problem import EvaluationProblem
from trellis_evaluation.samples.format import (
    NUMBERS,
    SCHEMA,
    VERDICTS,
    Codec,
    indexed_text,
    key_hash,
    sample_id,
)


def write_store(path: Path, samples: Iterable[Sample]) -> None:
    """Write ``path`` whole or not at all; samples may come in any order.

    The file is built beside its place, synced, and renamed over what was there. ``EvaluationProblem`` where
    the same generation comes twice.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    beside.unlink(missing_ok=True)
    try:
        _build(beside, samples)
        with beside.open("rb") as file:
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _build(path: Path, samples: Iterable[Sample]) -> None:
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        # Nobody reads the file before it is renamed: a journal would only be written twice.
        connection.execute("pragma journal_mode = off")
        connection.execute("pragma synchronous = off")
        connection.execute("pragma cache_size = -65536")
        connection.executescript(SCHEMA)
        connection.execute("begin")
        codec = _keep(connection, samples)
        _describe(connection, codec)
        connection.execute("commit")
        connection.execute("insert into texts(texts) values ('optimize')")
    finally:
        connection.close()


def _keep(connection: sqlite3.Connection, samples: Iterable[Sample]) -> Codec:
    """Store the samples as they come and return their codec."""
    codec: Codec | None = None
    for sample in samples:
        if codec is None:
            codec = Codec.like(sample)
        if sample.number >= NUMBERS:
            raise EvaluationProblem(
                "samples_too_many", f"Problem '{sample.key}' has more than {NUMBERS} generations."
            )
        row = (sample_id(sample.position, sample.number), codec.encode(sample))
        try:
            connection.execute("insert into samples values (?, ?)", row)
        except sqlite3.IntegrityError:
            raise EvaluationProblem(
                "sample_twice",
                f"Generation {sample.number} of problem {sample.position} ('{sample.key}') comes twice.",
            ) from None
    codec = codec or Codec(b"", "")
    facts = [("dictionary", codec.dictionary), ("prompt", codec.prompt.encode())]
    connection.executemany("insert into facts values (?, ?)", facts)
    return codec


def _describe(connection: sqlite3.Connection, codec: Codec) -> None:
    """Write the columns and the index in the order of the ids, which is the only fast order for the index."""
    columns = _Columns()
    for place, (row, body) in enumerate(connection.execute("select id, body from samples order by id")):
        sample = codec.decode(body)
        columns.add(place, row, sample)
        text = indexed_text(codec.searched_text(sample))
        connection.execute("insert into texts(rowid, text) values (?, ?)", (row, text))
    data = {
        "id": columns.ids.tobytes(),
        "verdict": columns.verdicts.tobytes(),
        "score": columns.scores.tobytes(),
        "key": columns.keys.tobytes(),
    }
    groups: dict[str, dict[str, list[int]]] = {}
    for index, ((kind, name), members) in enumerate(sorted(columns.members.items())):
        groups.setdefault(kind, {})[name] = [index, len(members)]
        data[f"group/{index}"] = members.tobytes()
    connection.executemany("insert into columns values (?, ?)", data.items())
    facts = [("groups", json.dumps(groups).encode()), ("total", str(len(columns.ids)).encode())]
    connection.executemany("insert into facts values (?, ?)", facts)


@dataclass
class _Columns:
    """Numbers of all samples."""

    ids: "array[int]" = field(default_factory=lambda: array("q"))
    verdicts: "array[int]" = field(default_factory=lambda: array("B"))
    scores: "array[float]" = field(default_factory=lambda: array("d"))
    keys: "array[int]" = field(default_factory=lambda: array("Q"))
    members: dict[tuple[str, str], "array[int]"] = field(default_factory=dict)

    def add(self, place: int, row: int, sample: Sample) -> None:
        self.ids.append(row)
        self.verdicts.append(VERDICTS.index(sample.verdict))
        self.scores.append(sample.score)
        self.keys.append(key_hash(sample.key))
        for group in sample.groups.items():
            self.members.setdefault(group, array("i")).append(place)
