"""How a preference trainer's checkpoints come to their place."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trellis_train.hooks.stop import StoppedByRequest
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


class Precomputing(Measuring):
    """A trainer that asks the initial model about all rows while it is built."""

    def __init__(self) -> None:
        super().__init__()
        for _ in range(100):
            self.compute_ref_log_probs()

    def compute_ref_log_probs(self) -> None:
        type(self).rows_seen += 1


def test_a_stop_does_not_wait_for_all_log_probabilities_of_the_initial_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "trellis_train.preference.reporting.is_stop_requested", lambda _: reporting.rows_seen >= 5
    )
    reporting = with_reporting(Precomputing, None, str(tmp_path))

    with pytest.raises(StoppedByRequest):
        reporting()

    assert reporting.rows_seen == 5


@pytest.mark.parametrize(("step", "saved_step", "is_saved"), [(3, 2, True), (3, 3, False), (0, 0, False)])
def test_a_stop_does_not_wait_for_the_rest_of_a_step_of_several_passes(
    step: int, saved_step: int, is_saved: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = with_reporting(Measuring, None, str(tmp_path))()
    trainer.state.global_step, trainer.saved_step = step, saved_step
    (watch,) = trainer.callbacks
    monkeypatch.setattr("trellis_train.preference.reporting.is_stop_requested", lambda _: False)
    watch.on_substep_end(None, trainer.state, trainer.control)
    assert not trainer.control.should_training_stop

    monkeypatch.setattr("trellis_train.preference.reporting.is_stop_requested", lambda _: True)
    watch.on_substep_end(None, trainer.state, trainer.control)

    assert trainer.is_stopping
    assert (trainer.control.should_training_stop, trainer.control.should_save) == (True, is_saved)


def test_what_a_killed_attempt_left_unfinished_goes_when_the_next_one_saves(tmp_path: Path) -> None:
    staging = tmp_path / STAGING_FOLDER
    for step in (13, 20):
        (staging / f"checkpoint-{step}").mkdir(parents=True)
        (staging / f"checkpoint-{step}" / "optimizer.pt").touch()

    with_reporting(Trainer, None, None)(tmp_path, 20)._publish()

    assert [path.name for path in tmp_path.iterdir()] == ["global_step_20"]
    assert (tmp_path / "global_step_20" / "optimizer.pt").is_file()


class Looping:
    """A trainer whose loop a test runs by hand."""

    def __init__(self) -> None:
        self.callbacks: list[Any] = []
        self.state = SimpleNamespace(global_step=0, max_steps=2)
        self.control = SimpleNamespace()
        self.accelerator = SimpleNamespace(num_processes=1)
        self.eval_dataset = None

    def add_callback(self, callback: Any) -> None:
        self.callbacks.append(callback)

    def evaluate(self) -> dict[str, float]:
        return {}


def test_the_phases_of_steps_are_measured_and_a_validation_beside_them() -> None:
    events: list[Any] = []
    trainer = with_reporting(Looping, SimpleNamespace(write=events.append), None)()
    (watch,) = trainer.callbacks
    place = (None, trainer.state, trainer.control)

    watch.on_train_begin(*place)
    for step in (1, 2):
        watch.on_step_begin(*place)
        watch.on_pre_optimizer_step(*place)
        watch.on_optimizer_step(*place)
        trainer.state.global_step = step
        watch.on_log(*place, logs={"loss": 1.0})
        trainer.evaluate()
    watch.on_train_end(*place)

    metrics = [event for event in events if event.kind == "metrics"]
    assert [(event.step, sorted(event.values)) for event in metrics] == [
        (step, names)
        for step in (1, 2)
        for names in (
            [
                "loss",
                "timing_s/between",
                "timing_s/forward_backward",
                "timing_s/optimizer",
                "timing_s/step",
            ],
            ["timing_s/testing"],
        )
    ]
    timelines = [event for event in events if event.kind == "timeline"]
    assert [event.step for event in timelines] == [1, 2]
    assert [span.phase for span in timelines[0].lanes[0].spans] == [
        "between", "forward_backward", "optimizer", "testing"
    ]  # fmt: skip
