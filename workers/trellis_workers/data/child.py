"""The program that carries out a data task: ``python -m trellis_workers.data.child FOLDER LOCK``.

Only what the task's kind needs is imported. It leaves when its input closes, whatever becomes of the
worker; what it has done by then stays in the folder. (``warm_child`` carries out several.)
"""

import errno
import os
import re
import signal
import sys
import threading
import traceback
from importlib import import_module
from pathlib import Path
from typing import IO

from trellis_contracts.data_tasks import (
    EXIT_BAD_REQUEST,
    EXIT_STOPPED,
    FAILURE_FILE,
    REQUEST_FILE,
    DataTaskKind,
    TaskFailure,
)

from trellis_workers.core.lock import try_lock
from trellis_workers.data.files import MADE_FILE, ChildTask, write_result
from trellis_workers.data.tools import Tools

HANDLERS = {
    DataTaskKind.IMPORT: "trellis_workers.data.handlers.importing",
    DataTaskKind.PIPELINE: "trellis_workers.data.handlers.pipeline",
    DataTaskKind.PREVIEW: "trellis_workers.data.handlers.preview",
    DataTaskKind.STATISTICS: "trellis_workers.data.handlers.statistics",
    DataTaskKind.DIFF: "trellis_workers.data.handlers.diff",
    DataTaskKind.GENERATE: "trellis_workers.data.handlers.generate",
}
EXIT_NO_ROOM = 74  # EX_IOERR
#: The process of an earlier attempt, whose worker was thought dead, still works in the folder.
EXIT_OCCUPIED = 73  # EX_CANTCREAT
_WORK_LOCK = "work.lock"
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)
#: How numpy says that a file took only a part of an array.
_CUT_SHORT = re.compile(r"\d+ requested and \d+ written")


def read_task(folder: Path) -> ChildTask:
    """Read the worker's request."""
    return ChildTask.model_validate_json((folder / REQUEST_FILE).read_bytes())


def carry_out(folder: Path, lock: IO[str]) -> int:
    """Do what the folder's request asks for, alone; why it cannot be done lies in a file then."""
    with try_lock(folder / _WORK_LOCK) as is_alone:
        return _carry_out_alone(folder, lock) if is_alone else EXIT_OCCUPIED


def _carry_out_alone(folder: Path, lock: IO[str]) -> int:
    for stale in (MADE_FILE, FAILURE_FILE):
        (folder / stale).unlink(missing_ok=True)
    try:
        task = read_task(folder)
        handler = import_module(HANDLERS[task.request.kind])
        write_result(folder, handler.carry_out(task, Tools(folder, lock)))
    except Exception as error:  # noqa: BLE001 - the edge of the process
        return _explain(error, folder)
    return 0


def _explain(error: Exception, folder: Path) -> int:
    if type(error).__name__ == "RunCancelled":
        return EXIT_STOPPED
    if _means_no_room(error):
        return EXIT_NO_ROOM
    code, message = getattr(error, "code", None), getattr(error, "message", None)
    if not isinstance(code, str) or not isinstance(message, str):
        traceback.print_exception(error)
        return 1
    failure = TaskFailure(code=code, message=message)
    (folder / FAILURE_FILE).write_text(failure.model_dump_json(), encoding="utf-8")
    return EXIT_BAD_REQUEST


def _means_no_room(error: BaseException) -> bool:
    """Tell whether the disk is full; a pipeline's processes pass the error on as text."""
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        return True
    if any(os.strerror(number) in str(error) for number in _NO_ROOM) or _CUT_SHORT.search(str(error)):
        return True
    return error.__cause__ is not None and _means_no_room(error.__cause__)


def leave_with_worker() -> None:
    """End with everything that was started from here, when the worker's end of the input closes."""
    while sys.stdin.buffer.read(1):
        continue
    os.killpg(0, signal.SIGKILL)


def main(folder: Path, lock: IO[str]) -> int:
    """Carry out the task of a folder, standing back behind others where it takes long; the exit status."""
    threading.Thread(target=leave_with_worker, daemon=True).start()
    os.nice(read_task(folder).nice)
    return carry_out(folder, lock)


if __name__ == "__main__":
    with os.fdopen(int(sys.argv[2]), "a") as store_lock:
        status = main(Path(sys.argv[1]), store_lock)
    # Threads of libraries are not waited for: everything is written.
    sys.stderr.flush()
    os._exit(status)
