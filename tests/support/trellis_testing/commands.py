"""Commands of `trellis`, in the process of a test or in one of their own, against the platform of a test."""

import contextlib
import io
import os
import subprocess
import sys
import threading
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest
from trellis_api.core.database import Database
from trellis_cli.main import main

from trellis_testing.data_tasks import finish_data_tasks
from trellis_testing.waiting import wait_until

if TYPE_CHECKING:
    from trellis_tools.bench.light_platform import LightPlatform

Done = subprocess.CompletedProcess[str]


def trellis(platform: "LightPlatform", *arguments: str, stdin: str = "", **environment: str) -> Done:
    """Run a command and return its outcome; its caches are in the platform's folder."""
    return run_here(*arguments, stdin=stdin, environment=_environment_of(platform) | environment)


def run_here(*arguments: str, stdin: str = "", environment: Mapping[str, str]) -> Done:
    """Run a command in this process: starting one takes longer than most commands.

    It takes the streams and the environment of the whole process, so that nothing else may run meanwhile:
    what waits while a test goes on is a process, ``trellis_process``.
    """
    assert threading.current_thread() is threading.main_thread(), "use trellis_process in a thread"
    told, said = _Stream(), _Stream()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(told),
        contextlib.redirect_stderr(said),
    ):
        for name in [name for name in os.environ if name.startswith("TRELLIS_")]:
            patch.delenv(name)
        for name, value in environment.items():
            patch.setenv(name, value)
        patch.setattr(sys, "argv", ["trellis", *arguments])
        patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode()), "utf-8"))
        code: object = 0
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    assert isinstance(code, int), f"trellis ended with {code!r}, which is no exit code"
    return Done(["trellis", *arguments], code, told.read_all(), said.read_all())


class _Stream(io.TextIOWrapper):
    """A standard stream that is kept; like a real one it also takes bytes, through ``buffer``."""

    def __init__(self) -> None:
        super().__init__(io.BytesIO(), "utf-8", newline="\n", write_through=True)

    def read_all(self) -> str:
        self.seek(0)
        return self.read()


def trellis_process(platform: "LightPlatform", *arguments: str) -> Done:
    """Run a command in a process of its own and return its outcome."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TRELLIS_")}
    return subprocess.run(
        [sys.executable, "-m", "trellis_cli", *arguments],
        env=inherited | _environment_of(platform),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _environment_of(platform: "LightPlatform") -> dict[str, str]:
    return {
        "TRELLIS_DATA_ROOT": str(platform.settings.data_root),
        "TRELLIS_PORT": str(platform.settings.port),
        "XDG_CACHE_HOME": cache_of(platform),
        "COLUMNS": "200",
    }


def cache_of(platform: "LightPlatform") -> str:
    """Return where the commands keep their caches."""
    return str(platform.settings.data_root / "cache")


def trellis_with_workers(platform: "LightPlatform", *arguments: str) -> Done:
    """Run a command that waits for data tasks, and carry those out meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(trellis_process, platform, *arguments)
        while not running.done():
            wait_until(lambda: running.done() or _has_work(platform), 90, "a task or the end of the command")
            carry_out_data_tasks(platform)
        return running.result()


def carry_out_data_tasks(platform: "LightPlatform") -> None:
    """Carry out the pending data tasks in this process, as the workers would."""
    database = Database(platform.settings)
    try:
        finish_data_tasks(platform.settings, database)
    finally:
        database.dispose()


def _has_work(platform: "LightPlatform") -> bool:
    return bool(platform.client.get("/data-tasks", state="queued")["items"])
