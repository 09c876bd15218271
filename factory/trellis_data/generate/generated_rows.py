"""Generated rows with where they come from, written as Parquet shards; what was dropped lies beside them."""

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import pyarrow as pa
from trellis_contracts.generation import Generation, RejectionSampling

from trellis_data.chat_client import Message
from trellis_data.formats.shapes import PLAIN_MESSAGE
from trellis_data.pipeline.shards import WHOLE, ParquetAppender

DROPPED_FILE = "dropped.jsonl"
_SHARD_ROWS = 50_000
_GROUP_ROWS = 1000
_PROVENANCE = pa.struct(
    [
        ("model", pa.string()),
        ("host", pa.string()),  # of the endpoint
        ("method", pa.string()),
        ("template_hash", pa.string()),  # of the words around what seed rows say
        ("seed_rows", pa.list_(pa.int64())),  # positions of those that were shown
        ("sample", pa.int32()),
        ("temperature", pa.float64()),
        ("top_p", pa.float64()),
        ("seed", pa.int64()),  # that the endpoint was given
    ]
)
_SCORES = [("reference", pa.string()), ("reward", pa.float32()), ("pass_rate", pa.float32())]


@dataclass(frozen=True)
class Made:
    """A row that was generated."""

    prompt: tuple[Message, ...]
    answer: str
    seed_rows: tuple[int, ...]
    #: Which of the answers to its prompt, or of the instructions of its request.
    sample: int
    seed: int
    reference: str | None = None
    reward: float | None = None
    #: Share of the prompt's answers that passed.
    pass_rate: float | None = None


class Output:
    """Where rows go; the files are whole when it was left without an error."""

    def __init__(self, folder: Path, settings: Generation) -> None:
        self._rows_folder, self._settings = folder / WHOLE, settings
        self._rows_folder.mkdir()
        self._schema = _schema_of(settings)
        self._common = _common_provenance(settings)
        self._file: ParquetAppender | None = None
        self._pending: list[dict[str, Any]] = []
        self._dropped = (folder / DROPPED_FILE).open("w", encoding="utf-8")
        self.rows = 0
        self.reasons: Counter[str] = Counter()
        self.shards: list[str] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, _: object, __: TracebackType | None) -> None:
        self._dropped.close()
        if kind is None:
            self._flush()
        if self._file is not None:
            self._file.close()

    def add(self, made: Made) -> None:
        """Keep a row."""
        provenance = {"seed_rows": list(made.seed_rows), "sample": made.sample, "seed": made.seed}
        row = {
            "messages": [turn._asdict() for turn in (*made.prompt, Message("assistant", made.answer))],
            "reference": made.reference,
            "reward": made.reward,
            "pass_rate": made.pass_rate,
            "generation": {**self._common, **provenance},
        }
        self._pending.append(row)
        self.rows += 1
        if len(self._pending) >= _GROUP_ROWS:
            self._flush()

    def drop(self, reason: str, seed_rows: tuple[int, ...], **what: Any) -> None:
        """Note what does not become a row, and why."""
        self.reasons[reason] += 1
        line = {"reason": reason, "seed_rows": seed_rows, **what}
        self._dropped.write(json.dumps(line, ensure_ascii=False) + "\n")

    def _flush(self) -> None:
        if not self._pending and self._file is not None:
            return
        if self._file is None or self._file.rows >= _SHARD_ROWS:
            if self._file is not None:
                self._file.close()
            self.shards.append(f"part-{len(self.shards):05d}.parquet")
            self._file = ParquetAppender(self._rows_folder / self.shards[-1])
        # A file without rows has the columns all the same.
        self._file.write(pa.Table.from_pylist(self._pending, self._schema))
        self._pending = []


def template_hash(settings: Generation) -> str:
    """Return the SHA-256 of the fixed text around the contents of seed rows."""
    template = None if isinstance(settings.method, RejectionSampling) else settings.method.template
    text = json.dumps([settings.system, template], ensure_ascii=False)
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()


def _schema_of(settings: Generation) -> pa.Schema:
    scores = _SCORES if isinstance(settings.method, RejectionSampling) else []
    return pa.schema([("messages", pa.list_(PLAIN_MESSAGE)), *scores, ("generation", _PROVENANCE)])


def _common_provenance(settings: Generation) -> dict[str, Any]:
    # The address may hold a password; its host and port say enough.
    address = urlsplit(settings.endpoint.base_url)
    return {
        "model": settings.endpoint.model,
        "host": address.netloc.rpartition("@")[2],
        "method": settings.method.kind,
        "template_hash": template_hash(settings),
        "temperature": settings.sampling.temperature,
        "top_p": settings.sampling.top_p,
    }
