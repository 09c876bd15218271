"""What the launch preview says that a run takes in memory, against what it takes.

Runs go through a platform. Measured is what the proportional set size of all of its processes rises by,
sampled twice a second: what the platform takes without a run is not counted.
"""

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trellis_cli.client import ApiClient
from trellis_cli.demo.starter import make_starter
from trellis_cli.demo.steps import ensure_dataset, ensure_model, find_or_get, register_folder, write_once
from trellis_cli.errors import Problem
from trellis_cli.services.temporary import temporary_platform
from trellis_cli.watch import watch_job
from trellis_data.json_objects import read_objects

from trellis_tools.bench.engine_job import adapter_params
from trellis_tools.bench.peak_memory import PeakMemory, adopted_orphans
from trellis_tools.bench.result import Result

GIB = 2**30
#: Estimate and measurement differ by a fifth at most.
BOUND = 1.2
SEED = 1
STEPS = 2
#: Two steps: the optimizer's state is there from the first on.
_COMMON: Mapping[str, Any] = {
    "total_steps": STEPS,
    "validation_rows": 0,
    "validate_every": 0,
    "save_every": 0,
}
_ADAPTER: Mapping[str, Any] = adapter_params(16)


@dataclass(frozen=True)
class Case:
    """One run: what is trained on what; parameters are those of the preset but for these."""

    recipe: str
    rows: str
    params: Mapping[str, Any] = field(default_factory=dict)


#: Tokens of the longest row, as the pretrained model reads it: the estimate takes every pass for full.
_LONGEST = 96
CASES = (
    Case("sft", "sft", {"batch_size": 8, "max_length": _LONGEST}),
    Case("dpo", "pairs", {"batch_size": 8, "max_length": _LONGEST}),
    Case(
        "grpo",
        "prompts",
        {"batch_size": 8, "group_size": 4, "max_prompt_length": _LONGEST, "max_response_length": 24},
    ),
)


def measure_memory(model: str) -> Iterator[Result]:
    """Measure a run on the starter model and on ``model`` (a folder, or a name of the catalogue)."""
    with adopted_orphans(), temporary_platform() as client:
        root = Path(os.environ["TRELLIS_DATA_ROOT"])
        starter = root / "starter"
        make_starter(starter, SEED)
        tickets = root / "tickets"
        write_once(tickets, ("--seed", str(SEED), "--tickets", str(tickets)))
        sides = {
            "starter": (
                ensure_model(client, "starter", {"kind": "local", "path": "starter/model"}),
                {
                    "sft": starter / "data" / "sft.jsonl",
                    "pairs": starter / "data" / "preference_train.jsonl",
                    "prompts": starter / "data" / "rl_train.jsonl",
                },
                "cpu-tiny",
            ),
            "real": (
                register_folder(client, root, Path(model), "real")
                if Path(model).is_dir()
                else find_or_get(client, model),
                {
                    "sft": tickets / "rl_train.jsonl",
                    "pairs": write_pairs(tickets / "rl_train.jsonl", tickets / "pairs.jsonl"),
                    "prompts": tickets / "rl_train.jsonl",
                },
                "cpu-small",
            ),
        }
        for side, (model_id, files, preset) in sides.items():
            for case in CASES:
                for name, weights in (("full", {}), ("lora", _ADAPTER)):
                    request = {
                        "name": f"{case.recipe} {name}",
                        "recipe": case.recipe,
                        "preset": preset,
                        "model": model_id,
                        "dataset": ensure_dataset(client, files[case.rows], f"{side}-{case.rows}"),
                        "params": {**_COMMON, **case.params, **weights},
                        "seed": SEED,
                    }
                    yield compare(client, f"memory.{side}.{case.recipe}.{name}", request)


def compare(client: ApiClient, name: str, request: Mapping[str, Any]) -> Result:
    """Preview a job, run it, and compare; the ratio is the larger figure over the smaller."""
    preview = client.post("/jobs/preview", dict(request))
    if preview["memory"] is None:
        raise Problem(f"the preview for {name} has no estimate: {json.dumps(preview['issues'])}")
    estimate = int(preview["memory"]["peak_bytes"])
    with PeakMemory() as memory:
        job = client.post("/jobs", dict(request))["id"]
        ended = watch_job(client, job)
    if ended["state"] != "succeeded":
        raise Problem(f"{name}: {job} {ended['state']}: {(ended['failure'] or {}).get('reason')}")
    low, high = sorted((estimate, memory.peak_bytes))
    return Result(
        name,
        high / GIB,
        low / GIB,
        "GiB",
        bound=BOUND,
        details={
            "estimate_gib": round(estimate / GIB, 2),
            "measured_gib": round(memory.peak_bytes / GIB, 2),
            "peak_phase": preview["memory"]["peak_phase"],
        },
    )


def write_pairs(rows: Path, target: Path) -> Path:
    """Write pairs of the right answer and the answer to another message."""
    found = list(read_objects(rows))
    pairs = [
        {"prompt": row["prompt"], "chosen": row["answer"], "rejected": other["answer"]}
        for row, other in zip(found, [*found[1:], found[0]], strict=True)
        if row["answer"] != other["answer"]
    ]
    target.write_text("".join(json.dumps(pair) + "\n" for pair in pairs), encoding="utf-8")
    return target
