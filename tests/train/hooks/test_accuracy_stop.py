"""Ending a run by its accuracy: what counts as an improvement, and what is known after a resume."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from trellis_train.hooks.accuracy_stop import Evaluation, Standing, ending_by_accuracy, read_standing
from trellis_train.hooks.resuming import BrokenCheckpoint, check_resumable


class Trainer:
    """As much of verl's trainer as the hook calls."""

    accuracies: list[float]
    save_every, measures = 2, True

    def __init__(self, folder: Path, accuracies: list[float]) -> None:
        from omegaconf import OmegaConf

        self.config = OmegaConf.create(
            {
                "trainer": {"default_local_dir": str(folder)},
                "actor_rollout_ref": {"model": {"path": str(folder / "base")}},
            }
        )
        self.folder, self.accuracies = folder, accuracies
        self.global_steps, self.total_training_steps = 1, len(accuracies)
        self._saved_step: int | None = None

    def on_train_begin(self) -> None: ...

    def _validate(self) -> dict[str, float]:
        accuracy = self.accuracies[self.global_steps - 1]
        return {"val-core/linksearch/acc/mean@1": accuracy}

    def _save_checkpoint(self) -> None:
        actor = self.folder / f"global_step_{self.global_steps}" / "actor"
        (actor / "huggingface").mkdir(parents=True, exist_ok=True)
        (actor / "huggingface" / "config.json").write_text("{}")
        (actor / "huggingface" / "model.safetensors").write_text(f"weights {self.global_steps}")
        self._saved_step = self.global_steps

    def fit(self) -> int:
        """verl's loop, which saves the last step in any case; the last step that was made."""
        self.on_train_begin()
        while self.global_steps <= self.total_training_steps:
            if self.global_steps % self.save_every == 0 or self.global_steps == self.total_training_steps:
                self._save_checkpoint()
            if self.measures:
                self._validate()
            self.global_steps += 1
        return self.global_steps - 1


def make_trainer(
    folder: Path, accuracies: list[float], *, target: float | None = None, patience: int = 0
) -> Any:
    mixin = ending_by_accuracy(target=target, patience=patience, params={"mode": "masked"})
    return type("Ending", (mixin, Trainer), {})(folder, accuracies)


def read(path: Path) -> Any:
    return json.loads(path.read_text())


def test_a_target_of_zero_ends_the_run_after_its_first_evaluation_with_a_checkpoint(tmp_path: Path) -> None:
    """A10."""
    trainer = make_trainer(tmp_path, [0.0, 0.0, 0.0], target=0.0)

    assert trainer.fit() == 1

    assert read(tmp_path / "best_checkpoint.json")["step"] == 1
    assert (tmp_path / "global_step_1").is_dir()
    assert (tmp_path / "final" / "model.safetensors").read_text() == "weights 1"


def test_a_run_that_measures_nothing_leaves_its_last_model_too(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, [0.0] * 3)
    trainer.measures = False

    assert trainer.fit() == 3

    assert (tmp_path / "final" / "model.safetensors").read_text() == "weights 3"


def test_patience_counts_evaluations_that_do_not_strictly_improve(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, [0.2, 0.5, 0.5, 0.4, 0.9], patience=2)

    assert trainer.fit() == 4

    assert read(tmp_path / "best_checkpoint.json")["step"] == 2
    state = read(tmp_path / "final" / "training_state.json")
    assert (state["step"], state["best"]["step"], state["evaluations_without_improvement"]) == (4, 2, 2)


def test_the_best_checkpoint_outlives_the_pruning_of_its_folder(tmp_path: Path) -> None:
    import shutil

    make_trainer(tmp_path, [0.1, 0.6, 0.3]).fit()

    shutil.rmtree(tmp_path / "global_step_2")

    best = Path(read(tmp_path / "best_checkpoint.json")["path"])
    assert best.name == "global_step_2"
    assert (best / "actor/huggingface/model.safetensors").read_text() == "weights 2"
    assert [each.name for each in (tmp_path / "best").iterdir()] == ["global_step_2"]


def test_a_resumed_run_knows_what_was_measured_before_and_forgets_what_came_after(tmp_path: Path) -> None:
    lines = [{"step": 2, "accuracy": 0.5}, {"step": 4, "accuracy": 0.4}, {"step": 6, "accuracy": 0.9}]
    file = tmp_path / "evaluations.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines) + '{"step": 8, "acc')

    standing = read_standing(tmp_path, until=4)

    assert standing == Standing(Evaluation(2, 0.5), waited=1)
    assert len(file.read_text().splitlines()) == 2


def make_checkpoint(folder: Path) -> Path:
    checkpoint = folder / "global_step_3"
    (checkpoint / "actor").mkdir(parents=True)
    for part in ("model", "optim", "extra_state"):
        write_archive(checkpoint / "actor" / f"{part}_world_size_1_rank_0.pt")
    write_archive(checkpoint / "data.pt")
    return checkpoint


def write_archive(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("data.pkl", b"x" * 5000)


def test_a_whole_checkpoint_can_be_resumed_from(tmp_path: Path) -> None:
    check_resumable(make_checkpoint(tmp_path))


@pytest.mark.parametrize("part", ["actor/model_world_size_1_rank_0.pt", "actor/optim_world_size_1_rank_0.pt"])
def test_a_truncated_checkpoint_is_refused_with_what_to_do(tmp_path: Path, part: str) -> None:
    checkpoint = make_checkpoint(tmp_path)
    file = checkpoint / part
    file.write_bytes(file.read_bytes()[:3000])

    with pytest.raises(BrokenCheckpoint, match=r"is truncated\. Resume from another checkpoint"):
        check_resumable(checkpoint)


@pytest.mark.parametrize(
    ("part", "said"), [("data.pt", "data.pt"), ("actor/model_world_size_1_rank_0.pt", "weights")]
)
def test_a_checkpoint_that_was_not_finished_is_refused(tmp_path: Path, part: str, said: str) -> None:
    checkpoint = make_checkpoint(tmp_path)
    (checkpoint / part).unlink()

    with pytest.raises(BrokenCheckpoint, match=f"no {said}"):
        check_resumable(checkpoint)


def test_a_folder_that_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BrokenCheckpoint, match="Checkpoint not found"):
        check_resumable(tmp_path / "global_step_9")
