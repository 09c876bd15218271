"""What a check found, and what it is given to find it with."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

#: Skipped: it could not be tried here, which is nobody's fault.
State = Literal["ok", "failing", "skipped"]


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    check: str
    state: State
    #: What ran and what came of it, or the reason why it did not run.
    detail: str
    seconds: float | None = None


@dataclass(frozen=True)
class Ground:
    """What the checks work on: the starter model with its data, and a folder for what they leave."""

    folder: Path
    #: ``cuda``; the same runs can be made on ``cpu``.
    platform: str

    @property
    def model(self) -> Path:
        return self.folder / "model"

    @property
    def data(self) -> Path:
        return self.folder / "data"


class Check(Protocol):
    """Something that takes GPUs."""

    @property
    def name(self) -> str: ...

    @property
    def gpus(self) -> int: ...

    @property
    def package(self) -> str | None:
        """Without it the check cannot be made, and need not be."""
        ...

    def run(self, ground: Ground) -> Row:
        """Carry it out; whatever goes wrong is in the row."""
        ...
