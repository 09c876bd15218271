"""Samples of one benchmark on disk: appended while it runs, so that another attempt goes on behind them.

``<label>.jsonl`` holds a sample a line, ``<label>.json`` what they were measured with and, at the end, the
result. When the benchmark is done, ``<label>.sqlite`` takes the place of the lines.
"""

import os
from collections.abc import Callable
from io import FileIO
from pathlib import Path

from pydantic import ValidationError
from trellis_contracts.evaluation import SAMPLES_FOLDER, BenchmarkResult, Sample
from trellis_contracts.recipe import Strict
from trellis_evaluation.samples.store import write_store


class State(Strict):
    """What the samples of a benchmark belong to, and how far they are."""

    #: Of all that decides the samples: order, data, prompts, seed, weights, engine.
    fingerprint: str
    #: That attempts have spent on it.
    seconds: float = 0.0
    #: There when the benchmark is done.
    result: BenchmarkResult | None = None


class SampleLog:
    """The files of one benchmark. ``open`` before anything else."""

    def __init__(self, output_dir: Path, label: str, fingerprint: str) -> None:
        folder = output_dir / SAMPLES_FOLDER
        folder.mkdir(parents=True, exist_ok=True)
        self._lines = folder / f"{label}.jsonl"
        self._store = folder / f"{label}.sqlite"
        self._state_file = folder / f"{label}.json"
        self._file: FileIO | None = None
        self.state = State(fingerprint=fingerprint)

    def open(self, take: Callable[[Sample], None]) -> None:
        """Give ``take`` the samples that earlier attempts left, if they were measured with the same things.

        A line that was torn when its writer died is dropped. Samples of another fingerprint are removed.
        """
        found = self._read_state()
        if found is None or found.fingerprint != self.state.fingerprint:
            for path in (self._state_file, self._lines, self._store):
                path.unlink(missing_ok=True)
            self._save_state()
            return
        self.state = found
        if not self.is_done:
            self.state.result = None  # of a store that is gone
            self._recover(take)

    @property
    def is_done(self) -> bool:
        """Whether the result and the store are there."""
        return self.state.result is not None and self._store.exists()

    def append(self, sample: Sample) -> None:
        """Write one sample in a single write."""
        if self._file is None:
            self._file = self._lines.open("ab", buffering=0)
        self._file.write(sample.model_dump_json().encode() + b"\n")

    def read(self) -> list[Sample]:
        """Read all samples in the order in which problems were drawn."""
        with self._lines.open("rb") as file:
            samples = [Sample.model_validate_json(line) for line in file]
        return sorted(samples, key=lambda sample: (sample.position, sample.number))

    def finish(self, samples: list[Sample], result: BenchmarkResult) -> None:
        """Write the store, then the result, and only then remove the lines."""
        self.close(result.seconds)
        write_store(self._store, samples)
        self.state.result = result
        self._save_state()
        self._lines.unlink(missing_ok=True)

    def close(self, seconds: float) -> None:
        """Note the time that was spent, and let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None
        self.state.seconds = seconds
        self._save_state()

    def _recover(self, take: Callable[[Sample], None]) -> None:
        if not self._lines.exists():
            return
        seen: set[tuple[int, int]] = set()
        lost = 0
        staging = self._lines.with_suffix(".jsonl.partial")
        with self._lines.open("rb") as file, staging.open("wb") as kept:
            for line in file:
                sample = _read_line(line)
                if sample is None or (sample.position, sample.number) in seen:
                    lost += 1
                    continue
                seen.add((sample.position, sample.number))
                kept.write(line)
                take(sample)
        if lost:
            os.replace(staging, self._lines)
        else:
            staging.unlink()

    def _read_state(self) -> State | None:
        try:
            return State.model_validate_json(self._state_file.read_bytes())
        except (OSError, ValidationError):
            return None

    def _save_state(self) -> None:
        staging = self._state_file.with_suffix(".json.partial")
        staging.write_text(self.state.model_dump_json())
        os.replace(staging, self._state_file)


def _read_line(line: bytes) -> Sample | None:
    """Parse the sample, or return None if the line is incomplete."""
    if not line.endswith(b"\n"):
        return None
    try:
        return Sample.model_validate_json(line)
    except ValidationError:
        return None
