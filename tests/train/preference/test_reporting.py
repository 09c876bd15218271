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


def test_what_a_killed_attempt_left_unfinished_goes_when_the_next_one_saves(tmp_path: Path) -> None:
    staging = tmp_path / STAGING_FOLDER
    for step in (13, 20):
        (staging / f"checkpoint-{step}").mkdir(parents=True)
        (staging / f"checkpoint-{step}" / "optimizer.pt").touch()

    with_reporting(Trainer, None, None)(tmp_path, 20)._publish()

    assert [path.name for path in tmp_path.iterdir()] == ["global_step_20"]
    assert (tmp_path / "global_step_20" / "optimizer.pt").is_file()
