"""Answers of the engine to a task of the harness, kept so that another attempt need not ask again."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from io import FileIO
from pathlib import Path
from typing import Any

from trellis_train.evaluate.inference import Answer
from trellis_train.evaluate.likelihoods import LogLikelihood


class AnswerLog:
    """Answers by the name of their request, one JSON object a line."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._answers: dict[str, Answer] = {}
        self._file: FileIO | None = None

    @staticmethod
    def name(kind: str, parts: Sequence[Any]) -> str:
        """Name a request by what it asks."""
        return hashlib.sha256(json.dumps([kind, parts], default=str).encode()).hexdigest()

    def open(self, owner: str) -> None:
        """Read what an earlier attempt has left for the same ``owner``, else begin anew."""
        lines = self._path.read_bytes().split(b"\n") if self._path.exists() else []
        if lines and lines[0] == owner.encode():
            # The last line is empty, or torn when its writer died.
            for line in lines[1:-1]:
                answer = _read(json.loads(line))
                self._answers[answer.id] = answer
            good = b"\n".join(lines[:-1]) + b"\n"
        else:
            good = owner.encode() + b"\n"
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_bytes(good)
        self._file = self._path.open("ab", buffering=0)

    def append(self, answer: Answer) -> None:
        """Keep an answer."""
        if self._file is None:
            raise RuntimeError("the log was not opened")
        self._answers[answer.id] = answer
        self._file.write(json.dumps(asdict(answer)).encode() + b"\n")

    def remove(self) -> None:
        """Delete the log after the task is done, since its samples contain everything."""
        self.close()
        self._path.unlink(missing_ok=True)

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def __contains__(self, name: object) -> bool:
        return name in self._answers

    def __getitem__(self, name: str) -> Answer:
        return self._answers[name]


def _read(fields: dict[str, Any]) -> Answer:
    likelihoods = tuple(LogLikelihood(**each) for each in fields.pop("likelihoods"))
    return Answer(**fields, likelihoods=likelihoods)
