"""Turns what the engine prints into log events: whole lines, without terminal codes or secrets."""

import codecs
import os
import re
import selectors
import threading
import time
from collections import deque
from collections.abc import Callable

from trellis_contracts.events import LogEvent, Stream

from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool
from trellis_train.supervise.redaction import Redactor

FLUSH_INTERVAL_S = 0.15
MAX_LINE_CHARS = 4_000
_MAX_KEPT_CHARS = MAX_LINE_CHARS + 1_000
_MAX_EVENT_LINES = 500
_MAX_EVENT_CHARS = 200_000
#: How long an unfinished line waits: a prompt or a progress bar that stands still.
_PARTIAL_LINE_S = 2.0
_TAIL_LINES = 200
_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])|[\x00-\x08\x0b\x0c\x0e-\x1f]"
)


class LineAssembler:
    """Makes lines of the bytes of one stream.

    A carriage return starts the line anew, as on a terminal, so that a progress bar
    becomes the line that it ends as rather than hundreds.
    """

    def __init__(self, mask: Callable[[str], str] = str) -> None:
        """Take ``mask``, which is applied to whole lines, before a secret could be cut in the middle."""
        self._mask = mask
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._partial = ""
        self._cut_chars = 0
        self._changed_at = 0.0

    def feed(self, data: bytes, now: float) -> list[str]:
        """Return the lines completed by these bytes."""
        *whole, rest = self._decoder.decode(data).replace("\r\n", "\n").split("\n")
        lines = []
        for piece in whole:
            self._append(piece)
            lines.append(self._take())
        self._append(rest)
        if data:
            self._changed_at = now
        return lines

    def flush(self, now: float, *, is_final: bool = False) -> list[str]:
        """Return the unfinished line if it has not changed for a while or nothing can follow."""
        is_due = bool(self._partial.strip()) and now - self._changed_at >= _PARTIAL_LINE_S
        if is_final:
            self._append(self._decoder.decode(b"", final=True))
            is_due = bool(self._partial)
        return [self._take()] if is_due else []

    def _append(self, piece: str) -> None:
        text = self._partial + piece
        if "\r" in text[:-1]:
            # The last \r may be the first half of a line end: keep it.
            tail = text[-1] if text.endswith("\r") else ""
            text = text[: len(text) - len(tail)].rsplit("\r", 1)[-1] + tail
            self._cut_chars = 0
        if len(text) > _MAX_KEPT_CHARS:
            self._cut_chars += len(text) - _MAX_KEPT_CHARS
            text = text[:_MAX_KEPT_CHARS]
        self._partial = text

    def _take(self) -> str:
        line = self._mask(_ANSI.sub("", self._partial.rstrip("\r")))
        cut_chars = self._cut_chars + max(0, len(line) - MAX_LINE_CHARS)
        if cut_chars:
            line = f"{line[:MAX_LINE_CHARS]} … [{cut_chars} more characters cut]"
        self._partial, self._cut_chars = "", 0
        return line


class OutputPump:
    """A thread that reads the engine's two streams until their end and writes log events."""

    def __init__(
        self,
        streams: dict[Stream, int],
        spool: Spool,
        redactor: Redactor,
        *,
        on_flush: Callable[[], None] = lambda: None,
        is_full: Callable[[], bool] = lambda: False,
    ) -> None:
        """Take ``streams``, from names to file descriptors; ``is_full`` says when to drop lines."""
        self._descriptors = streams
        self._spool = spool
        self._on_flush = on_flush
        self._is_full = is_full
        self._assemblers = {name: LineAssembler(redactor.mask) for name in streams}
        self._waiting: dict[Stream, list[str]] = {name: [] for name in streams}
        self._dropped_lines = 0
        self._thread = threading.Thread(target=self._run, name="output", daemon=True)
        #: The last lines of the run, for finding the cause of a failure.
        self.tail: deque[str] = deque(maxlen=_TAIL_LINES)

    def start(self) -> None:
        """Begin to read."""
        self._thread.start()

    def join(self, timeout_s: float) -> None:
        """Wait until both streams have ended: a process that inherited them may keep them open."""
        self._thread.join(timeout_s)

    def _run(self) -> None:
        with selectors.DefaultSelector() as selector:
            for name, descriptor in self._descriptors.items():
                selector.register(descriptor, selectors.EVENT_READ, name)
            flush_at = 0.0
            while selector.get_map():
                for key, _ in selector.select(FLUSH_INTERVAL_S):
                    data = os.read(key.fd, 65_536)
                    self._take_in(key.data, self._assemblers[key.data].feed(data, time.monotonic()))
                    if not data:
                        selector.unregister(key.fd)
                if time.monotonic() >= flush_at:
                    self._flush()
                    flush_at = time.monotonic() + FLUSH_INTERVAL_S
        for name, assembler in self._assemblers.items():
            self._take_in(name, assembler.flush(time.monotonic(), is_final=True))
        self._flush()

    def _take_in(self, stream: Stream, lines: list[str]) -> None:
        if not lines:
            return
        self.tail.extend(line for line in lines if line.strip())
        if self._is_full():
            self._dropped_lines += len(lines)
        else:
            self._waiting[stream] += lines

    def _flush(self) -> None:
        for name, assembler in self._assemblers.items():
            self._take_in(name, assembler.flush(time.monotonic()))
        if self._dropped_lines and not self._is_full():
            note = f"{self._dropped_lines} log lines were dropped: the upload queue is full."
            self._dropped_lines = 0
            self._write("platform", [note])
        has_written = False
        for name, lines in self._waiting.items():
            for piece in _split(lines):
                self._write(name, piece)
                has_written = True
            self._waiting[name] = []
        if has_written:
            self._on_flush()

    def _write(self, stream: Stream, lines: list[str]) -> None:
        try:
            self._spool.write(LogEvent(time=now(), stream=stream, lines=lines))
        except OSError:  # the disk is full: the run matters more than its log
            self._dropped_lines += len(lines)


def _split(lines: list[str]) -> list[list[str]]:
    """Split into pieces small enough for one event each."""
    pieces: list[list[str]] = []
    room_lines = room_chars = 0
    for line in lines:
        if room_lines < 1 or room_chars < len(line):
            pieces.append([])
            room_lines, room_chars = _MAX_EVENT_LINES, _MAX_EVENT_CHARS
        pieces[-1].append(line)
        room_lines -= 1
        room_chars -= len(line)
    return pieces
