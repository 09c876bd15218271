"""Preference pairs of a job's own model: of its responses to a prompt, the best against the worst.

The first attempt samples; later ones read what it left in the job's folder, so that all train on the same
pairs.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from trellis_contracts.parent_death import die_with
from trellis_contracts.spec import JobSpec

RECIPE = "agent_dpo"
MODULE = "trellis_train.agents.tooluse.pairs"
#: In the job's folder: the pairs of each split, and what the sampler printed.
FOLDER = "sampled-pairs"
TRAINED_SPLIT = "train"
_POLL_S = 0.2
Pair = dict[str, Any]


class BadSampling(ValueError):
    """No pairs can be made; says why."""


class SamplingStopped(Exception):
    """The job was stopped while its model was being sampled."""


def sample_pairs(spec: JobSpec, prompts: Path, split: str, is_stopped: Callable[[], bool]) -> list[Pair]:
    """Sample pairs from ``num_samples`` responses to each prompt of a Parquet file in verl's form.

    Raises ``BadSampling`` where the sampler fails, or where no two responses to train on differ in their
    reward; there may be none to validate on. ``SamplingStopped`` soon after ``is_stopped`` holds.
    """
    folder = Path(spec.attempt_dir).parent / FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    pairs = folder / f"{split}.jsonl"
    if not pairs.is_file():
        with (folder / f"{split}.log").open("w+b") as log:
            _sample(spec, prompts, pairs, log, is_stopped)
    # Line by line: ``splitlines`` would also cut at U+2028 and its like within the texts.
    with pairs.open(encoding="utf-8") as lines:
        found: list[Pair] = [json.loads(line) for line in lines]
    if not found and split == TRAINED_SPLIT:
        raise BadSampling(
            "no prompt has two responses with different rewards: train with agent_sft first, or raise"
            " num_samples"
        )
    return found


def _sample(spec: JobSpec, prompts: Path, pairs: Path, log: Any, is_stopped: Callable[[], bool]) -> None:
    options = {
        "--model": spec.model.path,
        "--data": prompts,
        "--output": pairs,
        "--samples": spec.params["num_samples"],
        "--max-tokens": spec.params["max_sample_tokens"],
        "--min-margin": spec.params["min_margin"],
        "--temperature": 1.0,
        "--seed": spec.seed,
        "--platform": spec.platform,
    }
    if terms := spec.params.get("rewards"):
        options["--reward"] = json.dumps(terms[0]["options"])
    command = [sys.executable, "-m", MODULE, *(str(part) for option in options.items() for part in option)]
    process = subprocess.Popen(  # noqa: S603 - our own module
        command,
        stdout=log,
        stderr=subprocess.STDOUT,
        env={**os.environ, **spec.env},
        preexec_fn=partial(die_with, os.getpid()),
    )
    try:
        while process.poll() is None:
            if is_stopped():
                raise SamplingStopped
            time.sleep(_POLL_S)
    finally:
        process.kill()
        process.wait()
    if process.returncode:
        log.seek(0)
        lines = log.read().decode(errors="replace").strip().splitlines()
        raise BadSampling(lines[-1] if lines else f"the sampler ended with status {process.returncode}")
