"""What a forked process does to be the interpreter that was asked for."""

import atexit
import contextlib
import ctypes
import fcntl
import os
import random
import runpy
import signal
import sys
import tempfile
import threading
import traceback
import types
from collections.abc import Callable, Mapping
from multiprocessing import spawn
from pathlib import Path
from typing import NoReturn

from trellis_train.cpu.forkserver.protocol import OPTIONS, Request

#: Settings that libraries read when they are loaded, which has happened: where they differ from the server's,
#: the process is not forked.
_READ_AT_LOADING = ("OMP_", "GOMP_", "MKL_", "OPENBLAS_", "LD_")
#: vLLM has the OpenMP that torch brings loaded first.
_PRELOAD = "LD_PRELOAD"
_READ_AT_START = ("PYTHONHASHSEED", "PYTHONPATH", "PYTHONHOME")
#: What a raylet tells its workers (Ray's ray_internal_flag_def.h): processes of another job are not forked.
_OF_A_JOB = ("RAY_JOB_ID", "RAY_RAYLET_PID")
#: Settings of glibc's that can be made later (mallopt(3)); -1 means never for the last.
_MALLOC = {"MALLOC_ARENA_MAX": -8, "MALLOC_MMAP_THRESHOLD_": -3, "MALLOC_TRIM_THRESHOLD_": -1}
_MOST_INT = (1 << 31) - 1
#: Above the numbers that any process asks for.
_ASIDE = 512


def settings_of_loading(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment variables that are read while the interpreter and its libraries load."""
    return {
        name: value
        for name, value in environment.items()
        if name in _READ_AT_START or name in _OF_A_JOB or name.startswith(_READ_AT_LOADING)
    }


def find_obstacle(request: Request, loaded: Mapping[str, str]) -> str | None:
    """Explain why a process cannot be forked, or return None."""
    asked = settings_of_loading(request.environment)
    differing = {name for name in asked.keys() | loaded.keys() if asked.get(name) != loaded.get(name)}
    if _is_loaded(asked.get(_PRELOAD, "")):
        differing.discard(_PRELOAD)
    if differing:
        return f"other settings of {', '.join(sorted(differing))} than those it was loaded with"
    _, rest = split_options(request.arguments)
    if not rest or (rest[0].startswith("-") and rest[0] != "-c"):
        return f"no script and no code to run: {' '.join(request.arguments)}"
    return None


def _is_loaded(libraries: str) -> bool:
    """Tell whether this process has all of these (ld.so(8): colons or spaces between) and at least one."""
    mapped = Path("/proc/self/maps").read_text()
    names = [os.path.realpath(each) for each in libraries.replace(":", " ").split()]
    return bool(names) and all(f" {name}\n" in mapped for name in names)


def split_options(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split arguments into the interpreter's options, and the program to run with its arguments."""
    for index, argument in enumerate(arguments):
        if argument not in OPTIONS:
            return arguments[:index], arguments[index:]
    return arguments, []


def run(request: Request, interpreter: list[str]) -> NoReturn:
    """Run as the requested process, from setting its descriptors to its end.

    ``interpreter``: the command by which it asks for processes of its own.
    """
    code = 1
    try:
        _take_descriptors(request.descriptors)
        os.setsid()
        for number in (signal.SIGCHLD, signal.SIGTERM):
            signal.signal(number, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _take_environment(request)
        _spawn_by(interpreter)
        code = _run_to_the_end(_prepare(request.arguments))
    except BaseException:  # noqa: BLE001 - the edge of a process
        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _take_descriptors(descriptors: Mapping[int, int]) -> None:
    """Give each its number, and close all others."""
    aside = {number: fcntl.fcntl(held, fcntl.F_DUPFD, _ASIDE) for number, held in descriptors.items()}
    for number, held in aside.items():
        os.dup2(held, number)
    _keep_descriptors(set(descriptors))


def _keep_descriptors(kept: set[int]) -> None:
    """Close all descriptors but these."""
    for number in [int(name) for name in os.listdir("/proc/self/fd")]:
        if number not in kept:
            with contextlib.suppress(OSError):  # the one that listed them is closed already
                os.close(number)


def _take_environment(request: Request) -> None:
    os.chdir(request.folder)
    os.environ.clear()
    os.environ.update(request.environment)
    tempfile.tempdir = None  # chosen again by the new TMPDIR
    _keep_memory_as_asked()
    random.seed()
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed()  # its global generator would repeat the server's


def _spawn_by(interpreter: list[str]) -> None:
    """Have multiprocessing's ``spawn`` start processes by this command.

    Its resource tracker, which outlives those who are killed, stays with the interpreter itself.
    """
    original = spawn.get_command_line

    def get_command_line(**arguments: object) -> list[str]:
        return [*interpreter, *original(**arguments)[1:]]

    spawn.get_command_line = get_command_line


def _keep_memory_as_asked() -> None:
    """Apply the malloc settings that glibc would have read from the environment at startup."""
    libc = ctypes.CDLL(None)
    for name, option in _MALLOC.items():
        if name in os.environ:
            value = int(os.environ[name])
            never = -1 if name == "MALLOC_TRIM_THRESHOLD_" else _MOST_INT
            if libc.mallopt(option, value if value <= _MOST_INT else never) != 1:
                raise OSError(f"glibc does not take {name}={value}")


def _prepare(arguments: list[str]) -> Callable[[], object]:
    """Return a function that runs the script or code as ``__main__``; set ``sys.argv`` and ``sys.path``."""
    options, rest = split_options(arguments)
    if "-u" in options:
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)  # type: ignore[union-attr]
    place = 0 if not sys.flags.safe_path else None
    if rest[0] == "-c":
        sys.argv = ["-c", *rest[2:]]
        _begin_path_with("", place)
        return lambda: _run_code(rest[1])
    sys.argv = list(rest)
    _begin_path_with(os.path.dirname(os.path.abspath(rest[0])), place)
    return lambda: runpy.run_path(rest[0], run_name="__main__")


def _begin_path_with(folder: str, place: int | None) -> None:
    if place is not None:
        sys.path[place] = folder


def _run_code(code: str) -> None:
    main = types.ModuleType("__main__")
    main.__builtins__ = __builtins__  # type: ignore[attr-defined]
    sys.modules["__main__"] = main
    exec(compile(code, "<string>", "exec"), main.__dict__)  # noqa: S102 - what `python -c` does


def _run_to_the_end(work: Callable[[], object]) -> int:
    """Run ``work``, wait for its other threads, run the exit handlers, and return the exit code."""
    code = 0
    try:
        work()
    except SystemExit as error:
        code = _code_of(error)
    except BaseException:  # noqa: BLE001 - as the interpreter does
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    return code


def _code_of(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return (error.code or 0) & 0xFF
    print(error.code, file=sys.stderr)
    return 1
