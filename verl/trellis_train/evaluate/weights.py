"""The folder with the weights to measure or to serve: the model's own, or a checkpoint's, gathered first."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from trellis_contracts.evaluation import CheckpointSource
from trellis_contracts.spec import JobSpec

from trellis_train.evaluate.benchmark import BenchmarkUnusable


@contextmanager
def provide_weights(
    spec: JobSpec, checkpoint: CheckpointSource | None, leave_if_asked: Callable[[], None]
) -> Iterator[Path]:
    """Yield a Hugging Face folder; a checkpoint's is made in the attempt's folder and removed afterwards."""
    if checkpoint is None:
        folder = Path(spec.model.path)
        if not (folder / "config.json").is_file():
            raise BenchmarkUnusable(f"the model {spec.model.model_id} is incomplete: config.json is missing")
        yield folder
        return
    for left in Path(spec.attempt_dir).glob("weights-*"):  # by an attempt that was killed
        shutil.rmtree(left, ignore_errors=True)
    with gather_checkpoint(spec, checkpoint, leave_if_asked) as folder:
        yield folder


@contextmanager
def gather_checkpoint(
    spec: JobSpec, checkpoint: CheckpointSource, leave_if_asked: Callable[[], None]
) -> Iterator[Path]:
    """Yield a Hugging Face folder with a checkpoint's weights, which is removed afterwards."""
    from trellis_train.export.gathering import gather_model

    with tempfile.TemporaryDirectory(prefix="weights-", dir=spec.attempt_dir) as scratch:
        output = Path(scratch) / "model"
        gather_model(
            Path(checkpoint.path),
            base=Path(spec.model.path) if spec.model.path else None,
            output=output,
            scratch=Path(scratch),
            leave_if_asked=leave_if_asked,
        )
        yield output
