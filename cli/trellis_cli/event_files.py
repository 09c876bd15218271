"""Metrics of a run as event files, which TensorBoard reads."""

import math
import time
from collections.abc import Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Protocol

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.wandb_writer import WandbRun

FOLDER = "tensorboard"


class Monitor(StrEnum):
    """Where the metrics of a local run go beside its file."""

    NONE = "none"
    TENSORBOARD = "tensorboard"
    WANDB = "wandb"


class MetricWriter(Protocol):
    """Takes in the metrics of a step."""

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Keep them."""

    def close(self) -> None:
        """Write what is left."""


class EventFiles:
    """Writes scalars to a folder; ``Problem`` where the package tensorboard is not installed."""

    def __init__(self, folder: Path) -> None:
        try:
            from tensorboard.compat.proto.event_pb2 import Event
            from tensorboard.compat.proto.summary_pb2 import Summary
            from tensorboard.summary.writer.event_file_writer import EventFileWriter
        except ImportError:
            raise Problem(
                "writing event files needs the package tensorboard",
                hint="pip install tensorboard, or remove monitor_type",
                exit_code=ExitCode.USAGE,
            ) from None
        self._event: Any = Event
        self._summary: Any = Summary
        self._file: Any = EventFileWriter(str(folder), flush_secs=10)

    def write(self, step: int, values: Mapping[str, float]) -> None:
        """Write one event with all finite numbers of a step."""
        scalars = [
            self._summary.Value(tag=name, simple_value=float(value))
            for name, value in values.items()
            if math.isfinite(value)
        ]
        summary = self._summary(value=scalars)
        self._file.add_event(self._event(wall_time=time.time(), step=step, summary=summary))

    def close(self) -> None:
        """Write what is left."""
        self._file.close()


def open_writer(
    monitor: Monitor, folder: Path, config: Mapping[str, Any] | None = None, *, is_resumed: bool = False
) -> MetricWriter | None:
    """Return the metric writer for a run in ``folder``, or None if no monitor is chosen.

    A resumed run goes on with its run of W&B, which takes each step once; any other begins one.
    """
    if monitor is Monitor.WANDB:
        return WandbRun(folder, config or {}, is_resumed=is_resumed)
    return EventFiles(folder / FOLDER) if monitor is Monitor.TENSORBOARD else None
