"""Reading the event spool in numbered batches that survive the process that reads them.

The entrypoint ships the spool while the run lives; the reconciler drains what is
left of it when the run is dead. Both continue from the same cursor file, and a batch
has the same number and the same events whoever sends it, so nothing arrives twice.
"""

import os
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from pydantic import BaseModel, TypeAdapter, ValidationError

from trellis_contracts.attempt import CURSOR_FILE, EVENTS_FOLDER
from trellis_contracts.events import Event

MAX_BATCH_EVENTS = 500
MAX_BATCH_BYTES = 1_000_000
#: Its events follow those of all others, so that the outcome closes the run.
LAST_PRODUCER = "entrypoint"

_EVENT: TypeAdapter[Event] = TypeAdapter(Event)


class _Cursor(BaseModel):
    """The batch to send next: its number, and where it starts and ends in every file.

    ``end`` is None until the batch has been cut. Once cut, it is sent in this very
    shape until it is acknowledged, by whichever process comes to it.
    """

    sequence: int = 1
    start: dict[str, int] = {}
    end: dict[str, int] | None = None


@dataclass(frozen=True)
class SpoolBatch:
    """Events with the number under which they are sent."""

    sequence: int
    events: list[Event]
    #: The same events as they lie in the spool: JSON texts, one an event.
    texts: list[bytes]

    def as_json(self, attempt: int) -> bytes:
        """Return the body of an ``IngestBatch`` without serializing the events again."""
        return b'{"attempt":%d,"sequence":%d,"events":[%s]}' % (attempt, self.sequence, b",".join(self.texts))


@dataclass
class _Slice:
    texts: list[bytes]
    events: list[Event]
    end: int
    size_bytes: int = 0
    #: Stopped for lack of room in the batch: more lies behind.
    is_full: bool = False


class SpoolReader:
    """Cuts ``<attempt_dir>/events/*.jsonl`` into batches. One reader at a time."""

    def __init__(self, attempt_dir: str | Path) -> None:
        self._folder = Path(attempt_dir) / EVENTS_FOLDER
        self._cursor_path = Path(attempt_dir) / CURSOR_FILE
        self._max_events = MAX_BATCH_EVENTS
        self._cursor = _Cursor()
        self._pending: SpoolBatch | None = None
        if self._cursor_path.exists():
            self._cursor = _Cursor.model_validate_json(self._cursor_path.read_bytes())

    def next_batch(self) -> SpoolBatch | None:
        """Return the batch to send, the same one until it is acknowledged; None when all has been sent."""
        if self._pending is None:
            self._pending = self._recut() if self._cursor.end is not None else self._cut()
        return self._pending

    def acknowledge(self, expected: int) -> None:
        """Move on: the platform has this batch and expects number ``expected`` next.

        A lower number than ours means that the platform lost what it had acknowledged
        (a database restored from a backup): the batch is then sent under that number.
        """
        if expected <= self._cursor.sequence:
            self._cursor.sequence = expected
            if self._pending is not None:
                self._pending = SpoolBatch(expected, self._pending.events, self._pending.texts)
            self._save()
            return
        self._cursor = _Cursor(sequence=expected, start=self._cursor.end or self._cursor.start)
        self._pending = None
        self._max_events = MAX_BATCH_EVENTS
        self._save()
        self._delete_sent_segments()

    def shrink(self) -> bool:
        """Cut the refused batch smaller, down to one event; False when that one was itself refused.

        A refused event that cannot be cut smaller is passed over, so that one stranger
        in the spool does not hold up everything behind it.
        """
        count = len(self._pending.events) if self._pending else 0
        if count > 1:
            self._max_events = max(1, count // 2)
            self._cursor.end = None
        else:
            self._cursor = _Cursor(sequence=self._cursor.sequence, start=self._cursor.end or {})
        self._pending = None
        self._save()
        return count > 1

    def measure_unsent_bytes(self) -> int:
        """Measure the bytes that wait in the spool."""
        return sum(
            max(0, _size(path) - self._cursor.start.get(path.name, 0)) for path in self._list_segments()
        )

    def _list_segments(self) -> list[Path]:
        """List the files in the order in which they are sent."""
        if not self._folder.is_dir():
            return []
        return sorted(self._folder.glob("*.jsonl"), key=self._order_of)

    def _order_of(self, path: Path) -> tuple[bool, str, int]:
        producer, segment = split_segment_name(path.name)
        return producer == LAST_PRODUCER, producer, segment

    def _cut(self) -> SpoolBatch | None:
        start = self._cursor.start
        end = dict(start)
        texts: list[bytes] = []
        events: list[Event] = []
        room_bytes = MAX_BATCH_BYTES
        for path in self._list_segments():
            offset = start.get(path.name, 0)
            if len(events) >= self._max_events:
                break
            if _size(path) <= offset:
                continue
            piece = self._read(path, offset, self._max_events - len(events), room_bytes, is_first=not events)
            texts += piece.texts
            events += piece.events
            room_bytes -= piece.size_bytes
            end[path.name] = piece.end
            if piece.is_full:
                break
        if not events:
            self._cursor.start = end  # past lines that were no events
            return None
        self._cursor.end = end
        self._save()
        return SpoolBatch(self._cursor.sequence, events, texts)

    def _recut(self) -> SpoolBatch:
        """Rebuild the batch that the cursor describes: an earlier process cut it and perhaps sent it."""
        texts: list[bytes] = []
        events: list[Event] = []
        for path in self._list_segments():
            offset, end = self._cursor.start.get(path.name, 0), (self._cursor.end or {}).get(path.name, 0)
            if end > offset:
                piece = self._read(path, offset, None, None, is_first=True, stop_at=end)
                texts += piece.texts
                events += piece.events
        return SpoolBatch(self._cursor.sequence, events, texts)

    def _read(
        self,
        path: Path,
        offset: int,
        max_events: int | None,
        max_bytes: int | None,
        *,
        is_first: bool,
        stop_at: int | None = None,
    ) -> _Slice:
        """Read complete lines from ``offset``; at least one if ``is_first``, however large it is."""
        piece = _Slice([], [], offset)
        with path.open("rb") as file:
            file.seek(offset)
            while (max_events is None or len(piece.events) < max_events) and (
                stop_at is None or piece.end < stop_at
            ):
                line = file.readline()
                if not line.endswith(b"\n"):
                    break
                has_some = bool(piece.events) or not is_first
                if max_bytes is not None and has_some and piece.size_bytes + len(line) > max_bytes:
                    piece.is_full = True
                    break
                piece.end += len(line)
                event = self._parse(line)
                if event is not None:
                    piece.size_bytes += len(line)
                    piece.texts.append(line.strip())
                    piece.events.append(event)
        return piece

    def _parse(self, line: bytes) -> Event | None:
        try:
            return _EVENT.validate_json(line)
        except ValidationError:
            return None  # cut off by a crash, or written by a stranger

    def _save(self) -> None:
        """Replace the cursor file in one step: a reader sees the old cursor or the new one."""
        draft = self._cursor_path.with_suffix(".tmp")
        draft.write_text(self._cursor.model_dump_json())
        os.replace(draft, self._cursor_path)

    def _delete_sent_segments(self) -> None:
        """Remove files that were sent to their end and that their producer has left behind."""
        segments = self._list_segments()
        for path, following in pairwise(segments):
            is_left = split_segment_name(path.name)[0] == split_segment_name(following.name)[0]
            if is_left and self._cursor.start.get(path.name, 0) >= _size(path):
                path.unlink()
                self._cursor.start.pop(path.name, None)


def split_segment_name(name: str) -> tuple[str, int]:
    """Split ``metrics.3.jsonl`` into ("metrics", 3); a name without a number is segment 0."""
    stem = name.removesuffix(".jsonl")
    producer, _, number = stem.rpartition(".")
    return (producer, int(number)) if producer and number.isdigit() else (stem, 0)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0
