"""The alarms on what real training reports: a run with an absurd learning rate, and one with a good one."""

from pathlib import Path

import pytest
from trellis_api.jobs.alarms.detector import Change, observe
from trellis_api.jobs.alarms.watch import Watch
from trellis_contracts.recipe import DataFormat
from trellis_testing.engine_runs import EngineRun, Rows, compose_job, run_engine
from trellis_train.starter.__main__ import main as make_starter

pytestmark = [pytest.mark.proves("sft"), pytest.mark.train, pytest.mark.timeout(600)]
EXPLOSIONS = {"loss_not_finite", "loss_exploding", "grad_norm_exploding"}


def train(folder: Path, *, learning_rate: float) -> EngineRun:
    make_starter(["--model", str(folder / "model"), "--data", str(folder / "data"), "--seed", "0"])
    params = {
        "total_steps": 12,
        "batch_size": 32,
        "validation_rows": 0,
        "learning_rate": learning_rate,
        "grad_clip": 1.0,
    }
    return run_engine(
        compose_job(
            folder / "job",
            recipe="sft",
            model=folder / "model",
            rows=Rows.from_json_lines(folder / "data" / "sft.jsonl", DataFormat.PROMPT_ANSWER),
            params=params,
            seed=3,
        )
    )


def alarms_of(run: EngineRun) -> list[Change]:
    """What the rules say to the events in the run's own spool, in the order in which it wrote them."""
    watch, changes = Watch(), []
    for event in run.events("metrics"):
        values = {key: float(value) for key, value in event["values"].items()}
        changes += observe(watch, [(event["step"], values)])
    return [change for change in changes if change.kind == "raised"]


def test_an_absurd_learning_rate_raises_an_alarm_and_a_good_one_does_not(tmp_path: Path) -> None:
    absurd = train(tmp_path / "absurd", learning_rate=1.0)
    good = train(tmp_path / "good", learning_rate=2e-3)

    assert {change.code for change in alarms_of(absurd)} & EXPLOSIONS, absurd.curve("train/loss")
    assert alarms_of(good) == [], good.curve("train/loss")
