"""The run directory of a pipeline: files under their final names are complete, so killed runs resume."""

import contextlib
import fcntl
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trellis_data.atomic_files import UNFINISHED, write_atomically
from trellis_data.pipeline.problem import PipelineProblem


class RunDirectory:
    """Where everything of a run lies."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.output = root / "output"
        self.dropped = root / "dropped"
        self.report = root / "report.json"
        self._identity = root / "run.json"

    def stage(self, index: int) -> Path:
        """Return the folder of a stage."""
        return self.root / "stages" / f"{index:02d}"

    def reduced(self, number: int, step: str) -> Path:
        """Return the folder for a global operator's decisions, which are kept for inspection."""
        return self.root / "reduced" / slug(number, step)

    def dropped_rows(self, number: int, step: str) -> Path:
        """Return the file with the rows that a step dropped."""
        return self.dropped / f"{slug(number, step)}.parquet"

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Allow only one run at a time; the lock ends with its process, however that ends."""
        self.root.mkdir(parents=True, exist_ok=True)
        with (self.root / "lock").open("w") as handle:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise PipelineProblem(
                    "work_folder_busy",
                    f"Another run is using {self.root}. Wait for it or choose another folder.",
                ) from None
            yield

    def enter(self, identity: dict[str, Any], *, fresh: bool) -> None:
        """Go on with the run that the folder holds if it is this one; begin where it is empty.

        ``identity`` is what decides on the result; a folder of another run is refused unless ``fresh``,
        which begins anew.
        """
        if self._identity.exists() and not fresh:
            found = json.loads(self._identity.read_text(encoding="utf-8"))
            if differing := [key for key, value in identity.items() if found.get(key) != value]:
                raise PipelineProblem(
                    "work_folder_taken",
                    f"{self.root} holds a run with other {', '.join(differing)}; choose another folder, "
                    "or ask for a fresh start.",
                )
        else:
            # First what says that the folder holds a run: one who ends here is begun anew, not gone on with.
            self._identity.unlink(missing_ok=True)
            self.report.unlink(missing_ok=True)
            for name in ("stages", "reduced", "dropped", "output"):
                if (self.root / name).exists():
                    shutil.rmtree(self.root / name)
            write_atomically(self._identity, json.dumps(identity, indent=1))
        self.sweep()

    def sweep(self) -> None:
        """Remove what was begun and never became whole; only while nobody writes."""
        for path in list(self.root.rglob(f"*{UNFINISHED}*")):
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink(missing_ok=True)


def slug(number: int, name: str) -> str:
    """Return a file name for a step (counted from 1) that contains the step's name."""
    safe = re.sub(r"[^\w.-]+", "_", name)
    return f"{number:02d}-{safe[:60]}"
