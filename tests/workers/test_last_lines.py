"""The end of a log: bounded, and without secrets."""

import os
from pathlib import Path

from trellis_workers.core.last_lines import last_lines

SECRET = "hf_" + "a" * 30


def test_the_last_lines_that_say_something(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("first\n  second  \n\nthird\r\n \n")

    assert last_lines(log, 2) == ["  second", "third"]
    assert last_lines(log, 9) == ["first", "  second", "third"]
    assert last_lines(tmp_path / "none", 9) == []


def test_a_log_larger_than_memory_is_no_burden(tmp_path: Path) -> None:
    log = tmp_path / "log"
    with log.open("wb") as file:
        file.truncate(64 * 1024**3)
        file.seek(0, os.SEEK_END)
        file.write(b"\nbut the end\nis short\n")

    assert last_lines(log, 2) == ["but the end", "is short"]


def test_secrets_are_not_told_nor_halves_of_them(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(f"key {SECRET} refused\n")
    whole = last_lines(log, 1)
    # The end that is read begins within the key.
    log.write_text(f"key {SECRET}\n{'x' * (64 * 1024 - 12)}\n")
    cut = last_lines(log, 9)

    assert whole == ["key [secret] refused"]
    assert not any("aaa" in line for line in cut)


def test_one_line_without_an_end_is_not_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("x" * 100_000)

    assert last_lines(log, 1) == []
