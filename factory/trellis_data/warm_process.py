"""The inside of a process that is kept for the next piece of work, because starting one for each took longer.

Folders of work come as lines of the input, exit statuses go as lines of the output. What is printed
meanwhile goes to a log in the folder.
"""

import os
import queue
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

from trellis_contracts.data_tasks import EXIT_NO_MEMORY

#: In the folder of the work.
LOG_FILE = "log"


def serve(carry_out: Callable[[Path], int]) -> NoReturn:
    """Do the work of folder after folder, until the input closes: in the middle of one, too."""
    # The output is for statuses alone, whatever libraries print.
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    folders: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(folders,), daemon=True).start()
    while True:
        folder = Path(folders.get())
        _print_to(folder / LOG_FILE)
        try:
            status = carry_out(folder)
        except MemoryError:
            traceback.print_exc()
            status = EXIT_NO_MEMORY
        except Exception:  # noqa: BLE001 - the edge of the process
            traceback.print_exc()
            status = 1
        sys.stdout.flush()
        sys.stderr.flush()
        answers.write(f"{status}\n")


def _listen(folders: "queue.SimpleQueue[str]") -> None:
    for line in sys.stdin:
        folders.put(line.rstrip("\n"))
    # With everything that was started from here.
    os.killpg(0, signal.SIGKILL)


def _print_to(path: Path) -> None:
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(log, stream)
    os.close(log)
