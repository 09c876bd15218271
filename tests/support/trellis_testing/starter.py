"""The starter model after supervised training on addition, made once a session: where RL begins."""

from dataclasses import dataclass
from pathlib import Path

from trellis_contracts.recipe import DataFormat
from trellis_train.starter.__main__ import main as make_starter

from trellis_testing.engine_runs import Rows, compose_job, run_engine

SEED = 0
#: It adds and hedges as the lessons do, and is right often enough to be reinforced.
SFT_PARAMS = {"validate_every": 0, "validation_rows": 0, "save_every": 0}


@dataclass(frozen=True)
class Starter:
    """A model with random weights, its data, and the model that supervised training made of it."""

    untrained: Path
    taught: Path
    sft: Rows
    rl_train: Rows
    rl_validation: Rows


def make_taught_starter(folder: Path) -> Starter:
    """Write the starter model and its data, and teach it: about 25 s on two cores."""
    make_starter(["--model", str(folder / "model"), "--data", str(folder / "data"), "--seed", str(SEED)])
    sft, train, validation = (
        Rows.from_json_lines(folder / "data" / f"{name}.jsonl", DataFormat.PROMPT_ANSWER)
        for name in ("sft", "rl_train", "rl_validation")
    )
    lessons = compose_job(
        folder / "job_sft", recipe="sft", model=folder / "model", rows=sft, params=SFT_PARAMS, seed=SEED
    )
    taught = run_engine(lessons).checkpoint()["hf_path"]
    return Starter(folder / "model", Path(taught), sft, train, validation)
