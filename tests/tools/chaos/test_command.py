"""What a campaign refuses before anything is started, and the disk that it fills."""

import errno
from pathlib import Path

import pytest
from trellis_cli.errors import ExitCode, Problem
from trellis_tools.chaos.command import run_chaos
from trellis_tools.chaos.disk import MIB, small_disk


def refuse(*kinds: str, database_url: str | None = None) -> Problem:
    with pytest.raises(Problem) as raised:
        run_chaos(
            minutes=1,
            count=None,
            seed=1,
            kinds=kinds,
            database_url=database_url,
            has_endpoint=True,
            is_json=False,
        )
    assert raised.value.exit_code == ExitCode.USAGE
    return raised.value


def test_a_fault_that_is_not_known_is_refused_with_those_that_are() -> None:
    problem = refuse("kill-api", "kill-everything")

    assert problem.message == "unknown fault: kill-everything"
    assert "kill-api, kill-worker" in (problem.hint or "")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("sqlite:///chaos.db", "SQLite is the default; omit --database"),
        ("postgresql://nobody@127.0.0.1:1/none", "cannot use the database"),
    ],
    ids=["another kind", "away"],
)
def test_a_database_that_cannot_be_used_is_refused(url: str, message: str) -> None:
    assert message in refuse(database_url=url).message


def test_a_full_disk_takes_no_byte_until_it_is_cleared(tmp_path: Path) -> None:
    with small_disk(tmp_path, 4 * MIB) as disk:
        if isinstance(disk, str):
            pytest.skip(disk)
        disk.fill()
        with pytest.raises(OSError, match="No space left") as raised:
            (tmp_path / "more").write_bytes(b"1")
        disk.clear()
        (tmp_path / "more").write_bytes(b"1" * MIB)

    assert raised.value.errno == errno.ENOSPC
    assert not (tmp_path / "more").exists()  # it went with the disk


def test_a_disk_that_cannot_be_mounted_says_why(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with small_disk(tmp_path) as disk:
        assert disk == "the mount command is not installed"
