"""What a run of a pipeline did, and what it says while it works."""

from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import Field
from trellis_contracts.recipe import DataFormat, Strict
from trellis_contracts.renamed import Renamed

from trellis_data.layout import Layout
from trellis_data.outcome import StepReport


class Output(Strict):
    """The rows that came out for one split."""

    rows: int
    files: list[str]
    size_bytes: int


class FunnelBar(Strict):
    """Rows that are left after a step; the first bar, without a step, is the input."""

    step: str | None
    rows: int


class RunReport(Strict, Renamed):
    """The whole of a finished run."""

    old_names: ClassVar = {"settled": "reduced"}

    pipeline: str
    pipeline_hash: str
    rows_in: int
    rows_out: int
    format: DataFormat
    #: Columns of the outputs by the role that they play.
    columns: dict[str, str] = Field(default_factory=dict)
    funnel: list[FunnelBar]
    steps: list[StepReport]
    #: By split; paths are relative to the work folder.
    outputs: dict[str, Output]
    #: Files of dropped rows by step, relative to the work folder.
    dropped: dict[str, str]
    #: What global steps decided by step, such as clusters; folders relative to the work folder.
    reduced: dict[str, str]
    #: Time of this call; a run that was interrupted took longer in all.
    seconds: float
    #: Most memory that all processes held together.
    peak_memory_bytes: int

    @property
    def layout(self) -> Layout:
        """What the columns of the outputs mean."""
        return Layout(self.format, self.columns)

    def files(self, work: Path) -> dict[str, list[Path]]:
        """Return the output files by split."""
        return {split: [work / name for name in output.files] for split, output in self.outputs.items()}


@dataclass(frozen=True)
class Progress:
    """How far a run is."""

    #: The steps that are being worked on, and in which of their phases.
    steps: tuple[str, ...]
    phase: str
    stage: int
    stages: int
    shards_done: int
    shards: int
    rows_done: int
    rows: int
    rows_per_s: float
    #: Of this phase; None as long as nothing is known.
    eta_s: float | None
