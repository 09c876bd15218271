"""Events are written whole or not at all, on a disk that gets full, too."""

import errno
import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.events import LogEvent
from trellis_contracts.spool import SpoolReader
from trellis_train.hooks.event_spool import Spool

NOW = datetime(2026, 1, 1, tzinfo=UTC)


class FullDisk(io.FileIO):
    """A file on a disk with some bytes of room, which may become free after some tries."""

    room_bytes = 0
    free_after: float = float("inf")

    def write(self, data: Any) -> int:
        written = super().write(bytes(data)[: self.room_bytes]) if self.room_bytes else 0
        if not written:
            self.free_after -= 1
            if self.free_after < 0:
                self.room_bytes = 10**6
            raise OSError(errno.ENOSPC, "No space left on device")
        self.room_bytes -= written
        return written


def spool_on_full_disk(folder: Path, *, free_after: float, patience_s: float) -> tuple[Spool, FullDisk]:
    spool = Spool(folder, "trainer", patience_s=patience_s)
    disk = FullDisk(spool._file.name, "ab")
    disk.free_after = free_after
    spool._file = disk
    return spool, disk


def say(spool: Spool, text: str) -> None:
    spool.write(LogEvent(time=NOW, stream="stdout", lines=[text]))


def read_lines(folder: Path) -> list[str]:
    batch = SpoolReader(folder).next_batch()
    return (
        [line for event in batch.events if isinstance(event, LogEvent) for line in event.lines]
        if batch
        else []
    )


def test_an_event_that_meets_a_full_disk_is_written_once_there_is_room(tmp_path: Path) -> None:
    spool, disk = spool_on_full_disk(tmp_path, free_after=2, patience_s=60)
    disk.room_bytes = 20  # the line is cut in its middle

    say(spool, "while it was full")
    say(spool, "after")

    assert read_lines(tmp_path) == ["while it was full", "after"]


def test_nothing_is_left_of_an_event_that_a_disk_has_no_room_for(tmp_path: Path) -> None:
    spool, disk = spool_on_full_disk(tmp_path, free_after=float("inf"), patience_s=0)
    disk.room_bytes = 20

    with pytest.raises(OSError, match="No space left"):
        say(spool, "lost")
    disk.room_bytes = 10**6
    say(spool, "after")

    assert read_lines(tmp_path) == ["after"]
