"""Where tasks run: in this process, in processes of this machine, or on a Ray cluster."""

import contextlib
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, Pipe, wait
from typing import IO, Literal, Protocol

from trellis_data.pipeline.problem import PipelineProblem
from trellis_data.pipeline.tasks import Task, label_of, run_task

ExecutorName = Literal["inline", "processes", "ray"]
#: A worker that dies takes its task with it once; what dies again has its cause in the rows or the step.
_ATTEMPTS = 2


class Watch(Protocol):
    """Who looks on while tasks run."""

    def rows(self, task: int, count: int) -> None:
        """Report that a task has processed so many more rows."""

    def done(self, task: int) -> None:
        """Report that a task is done."""

    def check(self) -> None:
        """Raise ``RunCancelled`` where the run is to end; called about five times a second."""


class Executor(Protocol):
    """Runs tasks, in any order."""

    def run(self, tasks: Sequence[Task], watch: Watch) -> None:
        """Run all; the first error ends the others and is raised."""

    def close(self) -> None:
        """End what was started, at once."""

    @property
    def peak_bytes(self) -> int:
        """Most memory that the processes held, added up; 0 where that cannot be told."""


@dataclass
class InlineExecutor:
    """One task after the other in this process."""

    peak_bytes: int = 0

    def run(self, tasks: Sequence[Task], watch: Watch) -> None:
        for index, task in enumerate(tasks):

            def tick(rows: int, index: int = index) -> None:
                watch.rows(index, rows)
                watch.check()

            watch.check()
            run_task(task, tick)
            watch.done(index)

    def close(self) -> None:
        return


@dataclass
class _Worker:
    process: subprocess.Popen[bytes]
    pipe: Connection
    log: IO[bytes]
    task: int | None = None
    peak_bytes: int = 0

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        self.pipe.close()
        self.log.close()

    def last_words(self) -> str:
        self.log.seek(0, os.SEEK_END)
        self.log.seek(max(0, self.log.tell() - 1000))
        return self.log.read().decode(errors="replace").strip()


@dataclass
class ProcessExecutor:
    """Processes of this machine that end with this one.

    They are programs of their own rather than ``multiprocessing``'s: a Celery worker may not have children
    of that kind, and nothing of the caller's state is inherited.
    """

    processes: int
    peak_bytes: int = 0
    _workers: list[_Worker] = field(default_factory=list)

    def run(self, tasks: Sequence[Task], watch: Watch) -> None:
        if len(tasks) == 1 and self.processes > 1:
            # What cannot be shared out gets every core, in a process of its own; the idle ones go, because
            # they would hold memory that it needs.
            self.peak_bytes = max(self.peak_bytes, self._held())
            self.close()
            alone = ProcessExecutor(1)
            try:
                alone.run(tasks, watch)
            finally:
                alone.close()
                self.peak_bytes = max(self.peak_bytes, alone.peak_bytes)
            return
        while len(self._workers) < min(self.processes, len(tasks)):
            self._workers.append(_start(self._threads))
        waiting = list(reversed(range(len(tasks))))
        attempts = [0] * len(tasks)
        while waiting or any(worker.task is not None for worker in self._workers):
            for worker in self._workers:
                if worker.task is None and waiting:
                    self._give(worker, waiting.pop(), tasks, attempts)
            busy: dict[object, _Worker] = {
                worker.pipe: worker for worker in self._workers if worker.task is not None
            }
            for pipe in wait([worker.pipe for worker in busy.values()], timeout=0.2):
                self._hear(busy[pipe], watch, tasks, attempts, waiting)
            watch.check()
        self.peak_bytes = max(self.peak_bytes, self._held())

    def close(self) -> None:
        for worker in self._workers:
            worker.end()
        self._workers.clear()

    @property
    def _threads(self) -> int:
        return max(1, (os.cpu_count() or 1) // self.processes)

    def _held(self) -> int:
        return sum(worker.peak_bytes for worker in self._workers)

    @staticmethod
    def _give(worker: _Worker, index: int, tasks: Sequence[Task], attempts: list[int]) -> None:
        attempts[index] += 1
        worker.task = index
        # A worker that is dead already is heard of when its pipe is read.
        with contextlib.suppress(BrokenPipeError):
            worker.pipe.send_bytes(pickle.dumps(tasks[index]))

    def _hear(
        self, worker: _Worker, watch: Watch, tasks: Sequence[Task], attempts: list[int], waiting: list[int]
    ) -> None:
        index = worker.task
        if index is None:
            raise ValueError("only workers with a task are listened to")
        try:
            kind, value = worker.pipe.recv()
        except (EOFError, ConnectionResetError):
            self._replace(worker, tasks[index], attempts[index])
            waiting.append(index)
            return
        if kind == "rows":
            watch.rows(index, value)
        elif kind == "failed":
            raise value
        else:
            worker.task, worker.peak_bytes = None, value
            watch.done(index)

    def _replace(self, worker: _Worker, task: Task, attempts: int) -> None:
        code, words = worker.process.wait(), worker.last_words()
        worker.end()
        self._workers.remove(worker)
        if attempts >= _ATTEMPTS:
            why = f"signal {-code}" if code < 0 else f"exit code {code}"
            raise PipelineProblem(
                "worker_died",
                f"The process that worked on {label_of(task)} ended {attempts} times ({why}). "
                f"Signal 9 mostly means that memory ran out: use fewer processes. {words}".strip(),
                shard=label_of(task),
            )
        self._workers.append(_start(self._threads))


def _start(threads: int) -> _Worker:
    ours, theirs = Pipe()
    log = tempfile.TemporaryFile()  # noqa: SIM115 - closed with the worker
    limits = {name: str(threads) for name in ("POLARS_MAX_THREADS", "RAYON_NUM_THREADS", "OMP_NUM_THREADS")}
    environment = {
        **os.environ,
        **limits,
        "ARROW_DEFAULT_MEMORY_POOL": "system",
        "MALLOC_ARENA_MAX": "2",
        "TOKENIZERS_PARALLELISM": "false",
        "PYTHONPATH": os.pathsep.join(place for place in sys.path if place),
    }
    command = [sys.executable, "-P", "-m", "trellis_data.pipeline.worker", str(theirs.fileno())]
    process = subprocess.Popen(  # noqa: S603 - this package's own program
        command,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        pass_fds=[theirs.fileno()],
    )
    theirs.close()
    return _Worker(process, ours, log)
