"""Carries out tasks that somebody waits for, one after the other: starting a process for each took longer.

Folders of tasks come as lines of the input, exit statuses go as lines of the output. It leaves when its
input closes, in the middle of a task too.
"""

import os
import queue
import signal
import sys
import threading
from pathlib import Path
from typing import IO

from trellis_workers.data.child import carry_out
from trellis_workers.data.files import LOG_FILE


def main(lock: IO[str]) -> None:
    """Load what previews need, then serve."""
    # The output is for statuses alone, whatever libraries print.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    folders: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(folders,), daemon=True).start()
    _load()
    while True:
        folder = Path(folders.get())
        log = os.open(folder / LOG_FILE, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        for stream in (1, 2):
            os.dup2(log, stream)
        os.close(log)
        status = carry_out(folder, lock)
        sys.stderr.flush()
        answers.write(f"{status}\n")


def _load() -> None:
    import trellis_data.catalogue

    import trellis_workers.data.handlers.preview  # noqa: F401 - loaded before somebody waits for it

    trellis_data.catalogue.operators()


def _listen(folders: "queue.SimpleQueue[str]") -> None:
    for line in sys.stdin:
        folders.put(line.rstrip("\n"))
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[1]), "a") as store_lock:
        main(store_lock)
