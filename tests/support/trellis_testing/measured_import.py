"""An import of a file in a process of its own, with its largest memory.

The processes are forked from one that has imported the reader: an interpreter of its own for each would take
seconds to import it.
"""

import multiprocessing
import resource
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from trellis_data.reading.importing import import_rows
from trellis_data.reading.problems import UnreadableFile
from trellis_data.reading.sources import LocalSource

CPU_LIMIT_S = 120
_FORKED = multiprocessing.get_context("forkserver")
# What is installed: the server does not know the paths that pytest adds. Each child imports pytest's main
# module, and pyarrow imports pandas when it makes its first array.
_FORKED.set_forkserver_preload(["pytest", "pandas", "trellis_data.reading.importing"])


def measure_import(path: Path, destination: Path, *, timeout_s: float = 240) -> dict[str, Any]:
    """Import a file; its counts or its error, and under ``peak`` the process's largest memory in bytes.

    Raises:
        AssertionError: The process died, or took longer than ``timeout_s``.
    """
    answer, sender = _FORKED.Pipe(duplex=False)
    process = _FORKED.Process(target=_import, args=(path, destination, sender))
    process.start()
    sender.close()
    try:
        assert answer.poll(timeout_s), f"the import of {path} took longer than {timeout_s} s"
        made: dict[str, Any] = answer.recv()
    except EOFError:
        process.join()
        raise AssertionError(f"the import of {path} ended with {process.exitcode}") from None
    finally:
        process.kill()
        process.join()
    return made


def _import(path: Path, destination: Path, sender: Connection) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_LIMIT_S, CPU_LIMIT_S))
    made: dict[str, Any]
    try:
        report = import_rows(LocalSource(path), destination)
        made = {"rows": report.rows, "quarantined": report.quarantined, "reasons": report.reasons}
        if report.warnings:
            made["warnings"] = [each["code"] for each in report.warnings]
    except UnreadableFile as error:
        made = {"code": error.code, "message": error.message}
    made["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    sender.send(made)
