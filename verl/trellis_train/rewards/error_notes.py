"""Keeps the first messages of rewards that raised: in the log, and where the trainer finds them."""

import json
import logging
import os
from pathlib import Path

from trellis_data.json_objects import read_objects

logger = logging.getLogger(__name__)

FILE = "reward-errors.jsonl"
#: Of each process; one broken reward would say the same for every response.
MAX_NOTES = 20
MAX_CHARACTERS = 500


class ErrorNotes:
    """The notes of this process."""

    def __init__(self, folder: Path | None) -> None:
        self._path = folder / FILE if folder is not None else None
        self._count = 0
        self._ended: set[str] = set()

    def add(self, term: str, message: str, *, is_final: bool = False) -> None:
        """Note one error; beyond the first few, only the one that ends the use of a reward."""
        self._count += 1
        is_news = is_final and term not in self._ended
        if is_final:
            self._ended.add(term)
        if self._count > MAX_NOTES and not is_news:
            return
        message = message[:MAX_CHARACTERS]
        logger.warning("reward '%s' failed on a response: %s", term, message)
        if self._path is not None:
            line = json.dumps({"term": term, "message": message, "is_final": is_final}) + "\n"
            # One write of one line: other processes write to the same file.
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(descriptor, line.encode())
            finally:
                os.close(descriptor)


def read_last_note(folder: Path, *, only_final: bool = False) -> str | None:
    """Return the newest note (``python: ValueError: ...``), or with ``only_final`` the newest final one.

    A final note reports an error that ended the use of its reward.
    """
    path = folder / FILE
    if not path.exists():
        return None
    notes = list(read_objects(path))
    found = [f"{note['term']}: {note['message']}" for note in notes if note["is_final"] or not only_final]
    return found[-1] if found else None
