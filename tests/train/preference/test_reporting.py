"""How a preference trainer's checkpoints come to their place."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trellis_train.preference.reporting import STAGING_FOLDER, with_reporting

pytestmark = pytest.mark.training


class Trainer:
    """As much of a trainer as the publishing of a checkpoint looks at."""

    def __init__(self, folder: Path, step: int) -> None:
        self.args = SimpleNamespace(output_dir=str(folder))
        self.state = SimpleNamespace(global_step=step)
        self.model = object()
        self.accelerator = SimpleNamespace(unwrap_model=lambda model: model)

    def add_callback(self, callback: Any) -> None:
        """Nothing happens in a loop here."""


class Measuring:
    """A trainer that measures by many rows."""

    rows_seen = 0

    def __init__(self) -> None:
        self.callbacks: list[Any] = []
        self.state = SimpleNamespace(global_step=3, max_steps=9)
        self.control = SimpleNamespace(should_save=False, should_training_stop=False)
        self.accelerator = SimpleNamespace(num_processes=1)

    def add_callback(self, callback: Any) -> None:
        self.callbacks.append(callback)

    def evaluate(self) -> dict[str, float]:
        for _ in range(100):
            self.rows_seen += 1
            self.callbacks[0].on_prediction_step(None, self.state, self.control)
        return {"eval_loss": 1.0}


def test_a_stop_does_not_wait_for_the_end_of_an_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "trellis_train.preference.reporting.is_stop_requested", lambda _: trainer.rows_seen >= 5
    )
    trainer = with_reporting(Measuring, None, str(tmp_path))()

    assert trainer.evaluate() == {}

    assert trainer.rows_seen == 5
    assert trainer.is_stopping
    assert trainer.control.should_save
    assert trainer.control.should_training_stop


def test_what_a_killed_attempt_left_unfinished_goes_when_the_next_one_saves(tmp_path: Path) -> None:
    staging = tmp_path / STAGING_FOLDER
    for step in (13, 20):
        (staging / f"checkpoint-{step}").mkdir(parents=True)
        (staging / f"checkpoint-{step}" / "optimizer.pt").touch()

    with_reporting(Trainer, None, None)(tmp_path, 20)._publish()

    assert [path.name for path in tmp_path.iterdir()] == ["global_step_20"]
    assert (tmp_path / "global_step_20" / "optimizer.pt").is_file()
