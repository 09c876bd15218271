"""What a campaign looks for when its platform has ended."""

from pathlib import Path

import pytest
from trellis_contracts.attempt import AUXILIARY_KEYS_FILE, ENGINE_KEY_FILE, REWARD_KEYS_FILE
from trellis_tools.chaos.ground import DATA_FOLDER, list_stray_files


@pytest.mark.parametrize("name", [AUXILIARY_KEYS_FILE, ENGINE_KEY_FILE, REWARD_KEYS_FILE])
def test_keys_of_runs_that_are_over_are_left_over(tmp_path: Path, name: str) -> None:
    attempt = tmp_path / DATA_FOLDER / "jobs" / "job_1" / "attempt-1"
    attempt.mkdir(parents=True)
    (attempt / "spec.json").touch()
    (attempt / name).touch()

    assert list_stray_files(tmp_path) == [f"{DATA_FOLDER}/jobs/job_1/attempt-1/{name}"]
