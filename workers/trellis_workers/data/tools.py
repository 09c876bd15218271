"""What handlers work with besides the task: its folder, its progress, and the store's lock."""

import fcntl
import time
from pathlib import Path
from typing import IO

from trellis_contracts.data_tasks import PROGRESS_FILE, DataTaskProgress

#: Pause between two writes of progress: the worker looks twice a second.
_TELL_EVERY_S = 0.2
_LOCK_PAUSE_S = 0.05


class Tools:
    """Of one task."""

    def __init__(self, folder: Path, lock: IO[str]) -> None:
        """Share ``lock``, the store's lock file that the worker has opened."""
        self.folder = folder
        self._lock = lock
        self._told = 0.0
        self._phase = ""
        self._began = time.monotonic()
        self._rows_before = 0

    def tell(self, progress: DataTaskProgress, *, now: bool = False) -> None:
        """Show how far the task is; most calls cost nothing."""
        moment = time.monotonic()
        is_news = progress.phase != self._phase
        if not now and not is_news and moment - self._told < _TELL_EVERY_S:
            return
        self._told, self._phase = moment, progress.phase
        path = self.folder / PROGRESS_FILE
        draft = path.with_suffix(".draft")
        draft.write_text(progress.model_dump_json(), encoding="utf-8")
        draft.rename(path)

    def tell_rows(self, phase: str, done: int, total: int | None = None, **counts: float) -> None:
        """Show rows of a phase, with its speed and the time that it will take."""
        if phase != self._phase:
            self._began, self._rows_before = time.monotonic(), done
        elapsed = time.monotonic() - self._began
        speed = (done - self._rows_before) / elapsed if elapsed > 1.0 else None
        eta = (total - done) / speed if total is not None and speed else None
        self.tell(
            DataTaskProgress(
                phase=phase, rows_done=done, rows=total, rows_per_s=speed, eta_s=eta, counts=counts
            )
        )

    def hold_store(self) -> None:
        """Hold the store: nothing in it is tidied until the worker has published what is added.

        The lock belongs to the file that the worker has opened: it stays when this process is gone.
        """
        while True:
            try:
                fcntl.flock(self._lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(_LOCK_PAUSE_S)
            else:
                return
