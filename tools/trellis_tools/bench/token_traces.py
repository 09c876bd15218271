"""What keeping tokens of a few responses takes of a step of GRPO, as a run measures it."""

import statistics
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trellis_tools.bench.engine_job import QUIET
from trellis_tools.bench.grpo import ENGINE_MODULE, OURS, SAME_PRIORITY, make_job, make_starter_material
from trellis_tools.bench.grpo_shapes import SHAPES
from trellis_tools.bench.grpo_steps import STEP, split_ours
from trellis_tools.bench.result import Result

SHARE = 0.01
#: Steps of a few seconds, each of which keeps tokens: longer steps and longer runs leave less to keep.
SHAPE = SHAPES["starter-64"]
#: As `trellis_train.hooks.token_traces` calls it; nothing of the engine is imported here.
TRACE_SECONDS = "perf/token_traces_s"


def measure_token_traces() -> Result:
    """Train some steps as a job does, and compare the seconds of the traces with those of a step."""
    with tempfile.TemporaryDirectory(prefix="trellis-traces-") as root:
        folder = Path(root)
        material = make_starter_material(SHAPE, folder)
        (folder / "job").mkdir()
        job = make_job(SHAPE, material, folder / "job", OURS[0])
        metrics = job.run(ENGINE_MODULE, {**QUIET, **SAME_PRIORITY})
    return compare(metrics, warm_up=SHAPE.warm_up)


def compare(metrics: Sequence[Mapping[str, Any]], *, warm_up: int) -> Result:
    """Compare the medians over the steps after ``warm_up``."""
    kept = [event["values"].get(TRACE_SECONDS) for event in metrics if event["step"] > warm_up]
    if None in kept:
        raise ValueError("a step kept no tokens")
    step_s = split_ours(metrics, warm_up=warm_up)[STEP]
    details = {"largest, s": round(max(kept), 4), "steps": len(kept)}
    return Result("token_traces", statistics.median(kept), step_s, "s a step", bound=SHARE, details=details)
