"""The program of a pipeline's process: takes tasks from a pipe, tells of rows done, ends with its parent."""

import os
import pickle
import queue
import sys
import threading
from multiprocessing.connection import Connection
from pathlib import Path

from trellis_data.pipeline.problem import PipelineProblem
from trellis_data.pipeline.tasks import label_of, run_task


def main(handle: int) -> None:
    """Do tasks until the pipe closes."""
    pipe = Connection(handle)
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(pipe, tasks), daemon=True).start()
    while True:
        task = pickle.loads(tasks.get())  # noqa: S301 - from the process that started this one
        try:
            run_task(task, lambda rows: pipe.send(("rows", rows)))
        except PipelineProblem as problem:
            pipe.send(("failed", problem))
        except Exception as error:  # noqa: BLE001 - the edge of a process: the runner raises it
            where = label_of(task)
            said = f"{where}: {type(error).__name__}: {error}"
            pipe.send(("failed", PipelineProblem("task_failed", said, shard=where)))
        else:
            pipe.send(("done", peak_memory_bytes()))


def _listen(pipe: Connection, tasks: "queue.SimpleQueue[bytes]") -> None:
    """Hand on what the runner sends; when it is gone, so is this process, in the middle of a batch too."""
    while True:
        try:
            tasks.put(pipe.recv_bytes())
        except (EOFError, OSError):
            os._exit(1)


def peak_memory_bytes() -> int:
    """Return this process's peak memory; 0 if the system does not report it."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


if __name__ == "__main__":
    main(int(sys.argv[1]))
