"""A trainer with our hooks: what it reports, and how it leaves when asked."""

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from omegaconf import OmegaConf
from trellis_contracts.attempt import STOP_FILE
from trellis_train.hooks import trainer as hooks
from trellis_train.hooks.event_spool import ATTEMPT_DIR_VARIABLE, Spool
from trellis_train.hooks.signals import Signals
from trellis_train.hooks.step_responses import StepResponses
from trellis_train.hooks.stop import StoppedByRequest
from trellis_train.hooks.token_traces import TRACE_SECONDS


class FakeTrainer:
    """The skeleton of verl's ``PPOTrainer.fit``: the same hooks in the same order."""

    _timings: Any

    def __init__(self, checkpoint_dir: Path, save_freq: int = -1) -> None:
        self.config = OmegaConf.create(
            {
                "data": {"max_response_length": 8},
                "trainer": {"default_local_dir": str(checkpoint_dir), "save_freq": save_freq},
                "actor_rollout_ref": {"actor": {}},
                "algorithm": {},
            }
        )
        self.tokenizer = self.processor = None
        self.logged: list[int] = []
        self.metrics: list[dict[str, float]] = []
        self.saved: list[int] = []
        self.global_steps = 0

    def run(self, total: int) -> None:
        self.planned = total
        self._init_dataloader()
        self.on_init_end()
        self.global_steps += 1
        self.on_train_begin()
        while self.global_steps <= self.total_training_steps:
            freq = self.config.trainer.save_freq
            if freq > 0 and self.global_steps % freq == 0:
                self._save_checkpoint()
            self.on_step_end()
            self._compute_metrics(SimpleNamespace(partition_id="train"), metrics := {})
            self.metrics.append(metrics)
            self.logged.append(self.global_steps)
            self.global_steps += 1

    def _init_dataloader(self) -> None:
        self.total_training_steps = self.planned

    def on_init_end(self) -> None: ...
    def on_train_begin(self) -> None: ...
    def on_step_end(self) -> None: ...
    def _compute_metrics(self, batch: Any, metrics: dict[str, float]) -> None: ...

    def _save_checkpoint(self) -> None:
        self.saved.append(self.global_steps)
        folder = Path(self.config.trainer.default_local_dir, f"global_step_{self.global_steps}")
        folder.mkdir(parents=True)
        (folder / "data.pt").write_bytes(b"12345")


class TrainerWithoutRows(FakeTrainer):
    def _init_dataloader(self) -> None:
        self.config.data.max_prompt_length = 512
        torch.utils.data.RandomSampler([])


@pytest.fixture
def attempt_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ATTEMPT_DIR_VARIABLE, str(tmp_path))
    monkeypatch.setattr(hooks._ReportingTrainer, "_report_rollouts", lambda *args: None)
    monkeypatch.setattr(hooks, "collect_signals", lambda batch, **options: Signals({"signal": 1.0}))
    monkeypatch.setattr(hooks, "read_step", lambda batch: StepResponses([], [], [], [], []))
    return tmp_path


def make_trainer(attempt_dir: Path, base: type[Any] = FakeTrainer, **arguments: Any) -> Any:
    cls = hooks.with_hooks(base, Spool(attempt_dir, "trainer"))
    return cls(attempt_dir / "checkpoints", **arguments)


def read_events(attempt_dir: Path, kind: str) -> list[dict[str, Any]]:
    lines = (attempt_dir / "events" / "trainer.1.jsonl").read_text().splitlines()
    return [event for line in lines if (event := json.loads(line))["kind"] == kind]


def test_progress_counts_the_steps_up_to_the_total(attempt_dir: Path) -> None:
    make_trainer(attempt_dir).run(total=3)

    training = [event for event in read_events(attempt_dir, "progress") if event["phase"] == "training"]
    assert [event["step"] for event in training] == [0, 1, 2, 3]
    assert {event["total_steps"] for event in training} == {3}


def test_every_step_is_logged_with_its_signals_and_what_its_traces_took(attempt_dir: Path) -> None:
    trainer = make_trainer(attempt_dir)
    trainer.run(total=2)

    assert trainer.metrics == [{"signal": 1.0, TRACE_SECONDS: 0.0}] * 2


def test_a_step_tells_what_its_time_went_into_and_how_long_responses_took(
    attempt_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Timed(FakeTrainer):
        def on_step_end(self) -> None:
            self.timing_raw = {}
            begun = self._timings.started_at
            self.timing_raw["gen"] = 0
            self.timing_raw["gen"] += 0.5
            monkeypatch.setattr(
                hooks,
                "read_step",
                lambda batch: StepResponses(
                    ["a"], [1.0], [torch.arange(5)], [5], [{}], [(begun + 0.1, begun + 0.4)]
                ),
            )

    trainer = make_trainer(attempt_dir, Timed)
    trainer.run(total=1)

    (event,) = read_events(attempt_dir, "timeline")
    assert (event["step"], event["response_count"]) == (1, 1)
    assert [span["phase"] for span in event["lanes"][0]["spans"]] == ["gen"]
    assert event["responses"][0]["tokens"] == 5
    assert trainer.metrics[0]["response_time_s/max"] == pytest.approx(0.3, abs=1e-4)


def test_the_validation_after_a_step_is_in_its_timeline_and_not_in_its_engine_metrics(
    attempt_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Validates(FakeTrainer):
        def on_step_end(self) -> None:
            self.timing_raw = {}
            begun = self._timings.started_at = time.time() - 10
            self._timings.spans = [("gen", begun, begun + 4), ("testing", begun + 6, begun + 10)]
            taken = [(1, 2, 0, 0.25), (3, 0, 0, 0.0), (7, 8, 8, 1.0), (9, 0, 0, 0.0)]
            loads = [(begun + after, *sample) for after, *sample in taken]
            monkeypatch.setattr(hooks, "take_loads", lambda _: [loads])

    trainer = make_trainer(attempt_dir, Validates)
    trainer.run(total=1)

    (event,) = read_events(attempt_dir, "timeline")
    assert [span["phase"] for span in event["lanes"][0]["spans"]] == ["gen", "testing"]
    assert event["engines"][0]["running"] == [2, 0, 8, 0]
    assert trainer.metrics[0]["rollout_engine/running/mean"] == 2.0
    assert trainer.metrics[0]["rollout_engine/waiting/mean"] == 0.0
    assert trainer.metrics[0]["rollout_engine/kv_cache_use/max"] == 0.25


@pytest.mark.parametrize("name", ["collect_signals", "measure_groups", "measure_hacking"])
def test_a_measurement_that_fails_is_logged_and_training_continues(
    name: str, attempt_dir: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_given: Any, **_options: Any) -> Any:
        raise ValueError("a column is too short")

    trainer = make_trainer(attempt_dir)
    monkeypatch.setattr(hooks, name, fail)

    trainer.run(total=2)

    assert trainer.logged == [1, 2]
    assert "training continues" in caplog.text
    assert "a column is too short" in caplog.text


def test_a_saved_checkpoint_is_announced_with_its_size(attempt_dir: Path) -> None:
    make_trainer(attempt_dir, save_freq=2).run(total=2)

    (event,) = read_events(attempt_dir, "checkpoint")
    assert (event["step"], event["size_bytes"]) == (2, 5)
    assert event["path"].endswith("global_step_2")


def test_asked_to_stop_it_saves_that_step_logs_it_and_leaves(attempt_dir: Path) -> None:
    class AskedAtStepTwo(FakeTrainer):
        def on_step_end(self) -> None:
            if self.global_steps == 1:
                (attempt_dir / STOP_FILE).touch()

    trainer = make_trainer(attempt_dir, AskedAtStepTwo)
    trainer.run(total=5)

    assert trainer.is_stopping
    assert trainer.saved == [2]
    assert trainer.logged == [1, 2]


def test_a_checkpoint_of_the_same_step_is_not_written_twice(attempt_dir: Path) -> None:
    class AskedWhileSaving(FakeTrainer):
        def _save_checkpoint(self) -> None:
            super()._save_checkpoint()
            (attempt_dir / STOP_FILE).touch()

    trainer = make_trainer(attempt_dir, AskedWhileSaving, save_freq=1)
    trainer.run(total=5)

    assert trainer.saved == [1]


def test_a_stop_reports_the_steps_that_were_planned(attempt_dir: Path) -> None:
    class AskedAtOnce(FakeTrainer):
        def on_train_begin(self) -> None:
            super().on_train_begin()

        def on_step_end(self) -> None: ...

    trainer = make_trainer(attempt_dir, AskedAtOnce)
    trainer.planned = 9
    trainer._init_dataloader()
    trainer.global_steps = 1
    (attempt_dir / STOP_FILE).touch()
    trainer.on_step_end()

    trainer.report_progress("training", step=1)

    assert read_events(attempt_dir, "progress")[-1]["total_steps"] == 9


@pytest.mark.parametrize(
    ("updated", "entropy"), [({"actor/entropy_loss": 1.5}, 1.5), ({}, None)], ids=["policy", "critic alone"]
)
def test_the_entropy_is_that_of_the_updates_where_the_pass_before_is_saved(
    updated: dict[str, float], entropy: float | None, attempt_dir: Path
) -> None:
    trainer = make_trainer(attempt_dir)
    trainer.config.algorithm = {"rollout_correction": {"bypass_mode": True}}

    trainer._compute_metrics(SimpleNamespace(partition_id="train"), metrics := dict(updated))

    assert metrics.get("actor/entropy") == entropy


def test_asked_in_its_last_step_it_has_nothing_to_do_but_finish(attempt_dir: Path) -> None:
    class AskedLate(FakeTrainer):
        def _compute_metrics(self, batch: Any, metrics: dict[str, float]) -> None:
            super()._compute_metrics(batch, metrics)

        def on_step_end(self) -> None: ...

    trainer = make_trainer(attempt_dir, AskedLate)
    trainer.planned = 1
    trainer._init_dataloader()
    trainer.global_steps = 1
    (attempt_dir / STOP_FILE).touch()

    trainer.on_step_end()

    assert not trainer.is_stopping
    assert trainer.saved == []


def test_asked_before_the_first_step_it_leaves_without_a_checkpoint(attempt_dir: Path) -> None:
    (attempt_dir / STOP_FILE).touch()
    trainer = make_trainer(attempt_dir)

    with pytest.raises(StoppedByRequest):
        trainer.run(total=5)

    assert trainer.is_stopping
    assert trainer.saved == []


class ValidatingTrainer(FakeTrainer):
    """Validates after every step, as verl does: behind the step's end, before its metrics."""

    trainer_mode = "sync"

    def __init__(self, *args: Any, stop_file: Path, asked: str, **arguments: Any) -> None:
        super().__init__(*args, **arguments)
        self.stop_file, self.asked = stop_file, asked
        self.validated: list[int] = []
        self.slept: list[int] = []
        self.checkpoint_manager = SimpleNamespace(sleep_replicas=lambda: self.slept.append(self.global_steps))

    def on_validate_begin(self) -> None:
        self._ask("validation")

    def on_validate_end(self) -> None: ...

    def _validate(self) -> dict[str, float]:
        self.validated.append(self.global_steps)
        return {"val": 1.0}

    def _ask(self, where: str) -> None:
        if self.asked == where and self.global_steps == 2:
            self.stop_file.touch()

    def run(self, total: int) -> None:
        self.planned = total
        self._init_dataloader()
        self.on_init_end()
        self.global_steps += 1
        self.on_train_begin()
        while self.global_steps <= self.total_training_steps:
            self._ask("step")
            self.on_step_end()
            self.on_validate_begin()
            self._validate()
            self.on_validate_end()
            self.logged.append(self.global_steps)
            self.global_steps += 1


@pytest.mark.parametrize(("asked", "validated", "slept"), [("step", [1], []), ("validation", [1, 2], [2])])
def test_a_stop_waits_neither_for_the_validation_after_its_step_nor_for_another_step(
    asked: str, validated: list[int], slept: list[int], attempt_dir: Path
) -> None:
    trainer = make_trainer(attempt_dir, ValidatingTrainer, stop_file=attempt_dir / STOP_FILE, asked=asked)

    trainer.run(total=9)

    assert trainer.is_stopping
    assert trainer.logged == [1, 2]
    assert trainer.saved == [2]
    assert trainer.validated == validated
    assert trainer.slept == slept


def test_a_stop_takes_another_step_where_its_responses_are_sampled_already(attempt_dir: Path) -> None:
    trainer = make_trainer(
        attempt_dir, ValidatingTrainer, stop_file=attempt_dir / STOP_FILE, asked="validation"
    )
    trainer.trainer_mode = "colocate_async"

    trainer.run(total=9)

    assert trainer.saved == [3]
    assert trainer.slept == []


def test_a_stop_does_not_wait_for_the_validation_of_the_initial_model(attempt_dir: Path) -> None:
    class Buffered(FakeTrainer):
        trainer_mode = "sync"

        def _build_replay_buffer(self) -> Any:
            return SimpleNamespace(sample=None)

    trainer = make_trainer(attempt_dir, Buffered)
    trainer.agent_loop_manager = SimpleNamespace(wait_for_news=lambda _: None)
    wait = trainer._build_replay_buffer()._wait_for_next_poll
    assert wait("val", 1.0) == 1.0
    (attempt_dir / STOP_FILE).touch()

    with pytest.raises(StoppedByRequest):
        wait("val", 1.0)
    # A step that has begun is taken to its end, for its checkpoint.
    assert wait("train", 1.0) == 1.0


def test_the_hooks_override_methods_that_every_trainer_of_verl_has() -> None:
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY

    names = [
        name for name in vars(hooks._ReportingTrainer) if callable(getattr(hooks._ReportingTrainer, name))
    ]
    own = {"report_progress", "_report_rollouts", "_report_timeline", "_leave_if_asked"}
    overridden = set(names) - own - {"_is_asked_to_end", "_end_with_this_step"}

    for trainer_cls in TRAINER_REGISTRY.values():
        assert {name for name in overridden if not hasattr(trainer_cls, name)} == set()


def test_prompts_that_are_all_too_long_are_told_with_what_to_raise(attempt_dir: Path) -> None:
    with pytest.raises(ValueError, match=r"more than 512 tokens \(max_prompt_length\)"):
        make_trainer(attempt_dir, TrainerWithoutRows).run(1)
