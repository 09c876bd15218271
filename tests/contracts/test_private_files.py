"""Files with secrets are written whole, for their owner alone, or not at all, and never through a link."""

import os
import secrets
import stat
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.private_files import create_private, write_private


def _full(*_: Any) -> None:
    raise OSError(28, "No space left on device")


def test_a_private_file_is_readable_by_its_owner_alone(tmp_path: Path) -> None:
    write_private(tmp_path / "token", "secret")

    assert (tmp_path / "token").read_text() == "secret"
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


def test_a_private_file_replaces_one_that_others_could_read(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old")
    (tmp_path / "token").chmod(0o644)

    write_private(tmp_path / "token", "new")

    assert (tmp_path / "token").read_text() == "new"
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


def test_nothing_is_left_of_a_private_file_that_a_full_disk_has_no_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "token").write_text("old")
    monkeypatch.setattr(os, "replace", _full)

    with pytest.raises(OSError, match="No space left"):
        write_private(tmp_path / "token", "new")

    assert [path.name for path in tmp_path.iterdir()] == ["token"]
    assert (tmp_path / "token").read_text() == "old"


def test_a_link_in_the_place_of_a_private_file_is_replaced(tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("of somebody else")
    (tmp_path / "token").symlink_to(elsewhere)

    write_private(tmp_path / "token", "secret")

    assert elsewhere.read_text() == "of somebody else"
    assert not (tmp_path / "token").is_symlink()
    assert (tmp_path / "token").read_text() == "secret"


@pytest.mark.parametrize("write", [write_private, create_private])
def test_a_link_in_the_place_of_its_draft_redirects_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, write: Any
) -> None:
    monkeypatch.setattr(secrets, "token_hex", lambda _: "guessed")
    elsewhere, planted = tmp_path / "elsewhere", tmp_path / "token.guessed.tmp"
    planted.symlink_to(elsewhere)

    with pytest.raises(FileExistsError):
        write(tmp_path / "token", "secret")

    assert not elsewhere.exists()
    assert not (tmp_path / "token").exists()
    assert planted.is_symlink()


def test_drafts_have_other_names_each_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drafts: list[Path] = []
    monkeypatch.setattr(os, "replace", lambda draft, _: drafts.append(draft))

    for _ in range(2):
        write_private(tmp_path / "token", "secret")

    assert len(set(drafts)) == 2


def test_a_file_that_is_there_is_not_created_again(tmp_path: Path) -> None:
    first = create_private(tmp_path / "token", "first")
    second = create_private(tmp_path / "token", "second")

    assert (first, second) == (True, False)
    assert (tmp_path / "token").read_text() == "first"
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["token"]


def test_a_link_that_leads_nowhere_is_not_followed_to_create_a_file(tmp_path: Path) -> None:
    (tmp_path / "token").symlink_to(tmp_path / "elsewhere")

    assert not create_private(tmp_path / "token", "secret")

    assert not (tmp_path / "elsewhere").exists()


def test_the_name_of_a_created_file_is_on_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced = []
    monkeypatch.setattr(
        os, "fsync", lambda descriptor: synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
    )
    assert create_private(tmp_path / "token", "secret")
    assert synced[-1] == str(tmp_path)
