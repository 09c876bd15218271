"""Logs stay bounded and are followed across rotation."""

from itertools import islice
from pathlib import Path

import pytest
from trellis_cli.services import logs


def test_the_tail_of_a_log_is_its_last_lines(tmp_path: Path) -> None:
    path = tmp_path / "api.log"
    path.write_text("".join(f"line {number}\n" for number in range(5000)))

    assert logs.tail(path, 2) == ["line 4998", "line 4999"]
    assert logs.tail(tmp_path / "missing.log", 2) == []


def test_a_large_log_is_emptied_under_its_writer_and_three_old_ones_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(logs, "MAX_BYTES", 10)
    path = tmp_path / "api.log"
    with path.open("ab", buffering=0) as writer:
        for number in range(5):
            writer.write(f"long line {number}\n".encode())
            logs.rotate(path)
        writer.write(b"after\n")

    assert path.read_text() == "after\n"
    kept = [path.with_name(f"api.log.{number}").read_text() for number in (1, 2, 3)]
    assert kept == ["long line 4\n", "long line 3\n", "long line 2\n"]
    assert not path.with_name("api.log.4").exists()


def test_following_goes_on_after_the_log_was_emptied(tmp_path: Path) -> None:
    path = tmp_path / "api.log"
    path.write_text("old line that is long\n")
    followed = logs.follow({"api": path}, 1)
    first = next(followed)

    path.write_text("new\nhalf")

    assert first == ("api", "old line that is long")
    assert list(islice(followed, 1)) == [("api", "new")]
