"""What training and measuring a pretrained model takes, beside the tools that people use for it today.

GRPO against TRL's GRPOTrainer, SFT against TRL's SFTTrainer (all weights and adapters), an evaluation against
lm-evaluation-harness; seconds and memory of both sides, in one run.
"""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from trellis_cli.demo.steps import find_or_get
from trellis_cli.services.temporary import temporary_platform
from trellis_data.json_objects import read_objects

from trellis_tools.bench.engine_job import Material
from trellis_tools.bench.evaluation import compare_evaluation, find_data
from trellis_tools.bench.grpo import Way, measure_shape
from trellis_tools.bench.grpo_shapes import Shape
from trellis_tools.bench.measured_command import run_measured
from trellis_tools.bench.result import Result
from trellis_tools.bench.sft import SftShape, measure_sft

DEFAULT = "smollm2-135m-instruct"
#: What each side runs fastest with on a model of this size.
GRPO_WAYS = ((Way("sampler"),), (Way("transformers"), Way("vllm")))
#: Short answers to prompts of a hundred tokens, as the demonstration trains them.
_GRPO = Shape(
    name="real",
    model=None,
    prompts=8,
    group_size=4,
    response_tokens=24,
    steps=4,
    warm_up=1,
    bound=1.0,
    updates=1,
    prompt_tokens=128,
    most_in_a_pass=16,
    preset="cpu-small",
    learning_rate=1e-5,
)
GRPO_SHAPES = (_GRPO, replace(_GRPO, name="real-lora", learning_rate=1e-4, lora_rank=16))
SFT_SHAPES = (
    SftShape("real", learning_rate=2e-5),
    SftShape("real-lora", learning_rate=2e-4, lora_rank=16),
)
#: Problems of the comparison with lm-evaluation-harness, and its bound.
EVALUATION_PROBLEMS = {"gsm8k": 32, "mmlu": 96}
EVALUATION_BOUND = 0.9


def measure_real_model(model: str) -> Iterator[Result]:
    """Yield the results one by one, for a model folder or a model of the catalogue."""
    data = find_data()
    with tempfile.TemporaryDirectory(prefix="trellis-real-") as name:
        root = Path(name)
        folder = fetch_model(model, root / "model")
        tickets = Material(folder, write_tickets(root))
        for grpo in GRPO_SHAPES:
            yield measure_shape(grpo, tickets, root / f"grpo-{grpo.name}", 1, GRPO_WAYS)
        lessons = Material(folder, write_lessons(data / "gsm8k" / "train.jsonl", root / "lessons.jsonl"))
        for sft in SFT_SHAPES:
            yield measure_sft(sft, lessons, root / f"sft-{sft.name}")
        place = root / "evaluation"
        place.mkdir()
        yield compare_evaluation(
            "eval_against_lm_eval.real", folder, place, EVALUATION_PROBLEMS, bound=EVALUATION_BOUND
        )


def fetch_model(model: str, target: Path) -> Path:
    """Return the folder ``model``, or fetch the catalogue's model of that name with a temporary platform."""
    if Path(model).is_dir():
        return Path(model).resolve()
    with temporary_platform() as client:
        made = client.get(f"/models/{find_or_get(client, model)}")
        shutil.copytree(Path(os.environ["TRELLIS_DATA_ROOT"]) / made["path"], target)
    return target


def write_tickets(root: Path) -> Path:
    """Write the demonstration's prompts for pretrained models."""
    run_measured("-m", "trellis_train.starter", "--tickets", str(root / "tickets"), log=root / "tickets.log")
    return root / "tickets" / "rl_train.jsonl"


def write_lessons(problems: Path, target: Path) -> Path:
    """Write questions of GSM8K and their worked answers."""
    rows = [{"prompt": row["question"], "answer": row["answer"]} for row in read_objects(problems)]
    target.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return target
