"""Measures what each piece of the layer for CPUs gains, on a pretrained model and on the starter model.

A run with everything is compared with runs that leave one piece out. The run with everything is repeated
before each of them, since a machine's pace changes. On the pretrained model the seconds of a step count, on
the starter model those of a whole run, start included, which is what most tests wait for.
"""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from trellis_tools.bench import grpo, sft
from trellis_tools.bench.engine_job import Material
from trellis_tools.bench.evaluation import find_data
from trellis_tools.bench.grpo_shapes import SHAPES
from trellis_tools.bench.grpo_steps import STEP
from trellis_tools.bench.measured_command import run_measured
from trellis_tools.bench.real_model import (
    GRPO_SHAPES,
    SFT_SHAPES,
    fetch_model,
    write_lessons,
    write_tickets,
)
from trellis_tools.bench.result import Result

LEAVE_OUT_VARIABLE = "TRELLIS_CPU_LEAVE_OUT"
#: Pieces that a supervised run uses.
SFT_PIECES = frozenset(
    {
        "cpu-gloo-devices", "cpu-sharding-units", "cpu-log-probs", "cpu-entropy", "cpu-packed-attention",
        "cpu-spinning",
    }
)  # fmt: skip


@dataclass(frozen=True)
class Workload:
    """A kind of run: trains in ``folder`` with these variables set and returns its seconds."""

    name: str
    run: Callable[[Path, dict[str, str]], float]
    #: The pieces that it can feel; None: all.
    pieces: frozenset[str] | None = None


def measure_cpu_layer(model: str, pieces: Sequence[str] = ()) -> Iterator[Result]:
    """Compare each workload with and without each of ``pieces`` (all of them for none).

    A result's ratio is the seconds with the piece over those without it: at most 0.95 where a piece is
    worth its code.
    """
    with tempfile.TemporaryDirectory(prefix="trellis-layer-") as name:
        root = Path(name)
        workloads = _workloads(model, root)
        for piece in pieces or list_pieces(root):
            for workload in workloads:
                if workload.pieces is not None and piece not in workload.pieces:
                    continue
                place = root / f"{workload.name}-{piece}"
                whole, reduced = place / "with", place / "without"
                whole.mkdir(parents=True)
                reduced.mkdir()
                seconds = workload.run(whole, {})
                without = workload.run(reduced, {LEAVE_OUT_VARIABLE: piece})
                yield Result(f"{piece}.{workload.name}", seconds, without, "s", bound=None)


def list_pieces(root: Path) -> list[str]:
    """List the names of all pieces."""
    script = "import json; from trellis_train.cpu.pieces import PIECES; print(json.dumps(PIECES))"
    pieces: list[str] = json.loads(run_measured("-c", script, log=root / "pieces.log").splitlines()[-1])
    return pieces


def _workloads(model: str, root: Path) -> list[Workload]:
    folder = fetch_model(model, root / "model")
    tickets = Material(folder, write_tickets(root))
    lessons = Material(folder, write_lessons(find_data() / "gsm8k" / "train.jsonl", root / "lessons.jsonl"))
    small = replace(SHAPES["starter-64"], steps=4)
    starter_root = root / "starter"
    starter_root.mkdir()
    starter = grpo.make_starter_material(small, starter_root)
    way = grpo.Way("sampler")

    def train_grpo(place: Path, env: dict[str, str]) -> float:
        return grpo.run_ours(GRPO_SHAPES[0], tickets, place, way, env).split[STEP]

    def train_sft(place: Path, env: dict[str, str]) -> float:
        shape = SFT_SHAPES[0]
        return 1 / sft.speed_ours(shape, sft.run_ours(shape, lessons, place, env)[0])

    def train_starter(place: Path, env: dict[str, str]) -> float:
        began = time.monotonic()
        grpo.run_ours(small, starter, place, way, env)
        return time.monotonic() - began

    return [
        Workload("grpo_step", train_grpo),
        Workload("sft_token", train_sft, SFT_PIECES),
        Workload("starter_run", train_starter),
    ]
