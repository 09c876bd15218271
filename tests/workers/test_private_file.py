"""Files with secrets are written whole, for their owner alone, or not at all."""

import os
import stat
from pathlib import Path
from typing import Any

import pytest
from trellis_workers.core.private_file import write_private


def test_a_private_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    write_private(tmp_path / "token", "secret")

    assert (tmp_path / "token").read_text() == "secret"
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


def test_nothing_is_left_of_a_private_file_that_a_full_disk_has_no_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("old")

    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_private(tmp_path / "token", "new")

    assert [path.name for path in tmp_path.iterdir()] == ["token"]
    assert (tmp_path / "token").read_text() == "old"
