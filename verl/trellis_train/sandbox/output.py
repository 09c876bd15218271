"""Keeps the end of what a process prints, and throws the rest away."""

import threading
from typing import IO


def as_text(text: str) -> str:
    """Replace lone surrogates, which JSON can contain but files cannot store."""
    return text.encode("utf-8", "replace").decode("utf-8")


class BoundedLog:
    """Reads a pipe to its end in a thread of its own, so that printing never blocks the process."""

    def __init__(self, pipe: IO[bytes] | None, limit_bytes: int) -> None:
        if pipe is None:
            raise RuntimeError("the process was started without a pipe for its output")
        self._pipe = pipe
        self._limit = limit_bytes
        self._kept = b""
        self._total = 0
        self._thread = threading.Thread(target=self._read, name="sandbox-output", daemon=True)
        self._thread.start()

    @property
    def is_cut(self) -> bool:
        """Whether something was thrown away."""
        return self._total > len(self._kept)

    def text(self) -> str:
        """Return the stored text."""
        return self._kept.decode("utf-8", "replace")

    def tail(self, characters: int) -> str:
        """Return the end of what was printed so far."""
        return self.text().strip()[-characters:]

    def close(self) -> None:
        """Wait for the end of the pipe; its writer must have ended."""
        self._thread.join(5.0)

    def _read(self) -> None:
        with self._pipe:
            while chunk := self._pipe.read1(65_536):  # type: ignore[attr-defined]
                self._total += len(chunk)
                self._kept = (self._kept + chunk)[-self._limit :]
