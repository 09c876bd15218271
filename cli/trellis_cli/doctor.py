"""What a machine must have before anything is started, each check with what to do about it."""

import os
import platform as python_platform
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil
from trellis_api.core.settings import Settings
from trellis_recipes.environment_plugins import find_plugins

from trellis_cli.gpu_tools import examine_tools, query

GIB = 1024**3
MIN_SHARED_MEMORY_BYTES = 512 * 1024**2
MIN_MEMORY_BYTES = 6 * GIB
#: What follows where jobs are not isolated.
_OPEN = "jobs can read the platform's secrets and other jobs' files"
SUPPORTED = ((3, 11), (3, 12))


@dataclass(frozen=True)
class Check:
    """One fact about the machine."""

    name: str
    state: Literal["ok", "warning", "failing"]
    detail: str


def examine(settings: Settings) -> list[Check]:
    """Look at everything; quick enough for every start."""
    return [
        check_python(),
        check_disk(settings),
        check_shared_memory(),
        check_memory(),
        check_frontend(settings),
        check_sandbox(),
        check_isolation(settings),
        check_gpus(settings),
        *check_gpu_tools(settings),
        *check_environment_plugins(),
    ]


def check_environment_plugins() -> list[Check]:
    """Check the environment kinds that installed packages bring; none where no package brings one."""
    plugins = find_plugins()
    if plugins.problems:
        return [Check("environment kinds", "warning", "; ".join(plugins.problems))]
    names = ", ".join(name for name, plugin in plugins.kinds.items() if not plugin.is_built_in)
    return [Check("environment kinds", "ok", f"from installed packages: {names}")] if names else []


def check_python() -> Check:
    """Check the version of the running Python interpreter."""
    version = python_platform.python_version()
    is_supported = sys.version_info[:2] in SUPPORTED
    return Check(
        "python",
        "ok" if is_supported else "failing",
        version if is_supported else f"{version}: requires 3.11 or 3.12",
    )


def check_disk(settings: Settings) -> Check:
    """Check the free space under the data root against the same limit as launches."""
    folder = settings.data_root
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    found = f"{free / GIB:.1f} GiB free for {settings.data_root}"
    if free < settings.min_free_disk_bytes:
        return Check("disk", "failing", f"{found}: free up space or move TRELLIS_DATA_ROOT")
    if not os.access(folder, os.W_OK):
        return Check("disk", "failing", f"{folder} is not writable: choose another TRELLIS_DATA_ROOT")
    return Check("disk", "ok" if free > 10 * GIB else "warning", found)


def check_database(settings: Settings) -> Check:
    """Check that the database answers; used for a platform's status, not before its first start."""
    # SQLAlchemy takes longer to import than most commands take to run.
    from sqlalchemy import text
    from sqlalchemy.exc import SQLAlchemyError
    from trellis_api.core.database import Database

    database = Database(settings)
    name = "SQLite" if database.is_sqlite else database.url.render_as_string(hide_password=True)
    if database.is_sqlite and not Path(database.url.database or "").exists():
        return Check("database", "warning", "SQLite, created on first start")
    try:
        with database.read() as session:
            session.connection().execute(text("SELECT 1"))
    except SQLAlchemyError as error:
        return Check("database", "failing", f"{name} does not respond: {str(error).splitlines()[0]}")
    finally:
        database.dispose()
    return Check("database", "ok", name)


def check_shared_memory() -> Check:
    """Check /dev/shm, through which weights are sent to the rollout engine."""
    try:
        total = shutil.disk_usage("/dev/shm").total  # noqa: S108
    except FileNotFoundError:
        return Check(
            "shared memory",
            "failing",
            "shared memory (/dev/shm) is missing; it is needed to transfer weights",
        )
    found = f"{total / GIB:.1f} GiB in /dev/shm"
    if total < MIN_SHARED_MEMORY_BYTES:
        return Check(
            "shared memory", "failing", f"{found}: 0.5 GiB are needed (in a container: --shm-size=2g)"
        )
    return Check("shared memory", "ok", found)


def check_memory() -> Check:
    """Check the memory for the engine's processes, each of which loads PyTorch."""
    memory = psutil.virtual_memory()
    found = f"{memory.available / GIB:.1f} of {memory.total / GIB:.1f} GiB available"
    return Check("memory", "ok" if memory.available > MIN_MEMORY_BYTES else "warning", found)


def check_sandbox() -> Check:
    """Check that user code can be run in a sandbox."""
    # Brings the tables along, which no command should wait for that does not need them.
    from trellis_api.rewards.availability import probe_sandbox

    problem = probe_sandbox(sys.executable)
    if problem is None:
        return Check("sandbox", "ok", "bubblewrap available for sandboxing")
    return Check("sandbox", "warning", f"{problem}: rewards 'code' and 'python' are unavailable")


def check_isolation(settings: Settings) -> Check:
    """Check that jobs can be isolated from files that they do not need."""
    mode = settings.resolved_job_isolation
    if mode == "off":
        why = "" if settings.job_isolation else " is the default with GPUs"
        return Check("job isolation", "warning", f"TRELLIS_JOB_ISOLATION=off{why}: {_OPEN}")
    probe = [str(settings.job_python or sys.executable), "-P", "-m", "trellis_contracts.isolated"]
    try:
        done = subprocess.run(probe, capture_output=True, text=True, timeout=30, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired) as error:
        problem: str | None = str(error)
    else:
        said = done.stdout.strip() or done.stderr.strip().rpartition("\n")[2]
        problem = None if done.returncode == 0 else said
    if problem is None:
        return Check("job isolation", "ok", "jobs see only the files they use")
    if mode == "required":
        return Check("job isolation", "failing", f"{problem}: jobs won't start (TRELLIS_JOB_ISOLATION)")
    return Check("job isolation", "warning", f"{problem}: {_OPEN}")


def check_frontend(settings: Settings) -> Check:
    """Check that the dashboard is built."""
    if settings.frontend_path is None:
        return Check("dashboard", "warning", "not built; run ./init.sh to build it")
    return Check("dashboard", "ok", "built")


def check_gpus(settings: Settings) -> Check:
    """Check the NVIDIA devices and report what jobs will run on."""
    count = settings.gpu_count
    if count == 0:
        return Check("gpus", "ok", f"none: jobs run on the CPU, {settings.total_slots} slot(s)")
    names = gpu_names()
    if not names:
        return Check("gpus", "warning", f"{count} device file(s), but nvidia-smi is not responding")
    return Check("gpus", "ok", f"{count} x {names[0]}, {settings.total_slots} slot(s)")


def check_gpu_tools(settings: Settings) -> list[Check]:
    """Check the tools that GPU jobs need; without them the platform starts, but jobs are slower or fail."""
    if settings.resolved_platform == "cpu" or settings.ray_address is not None:
        return []
    return [Check(tool.name, "ok" if tool.is_found else "warning", tool.detail) for tool in examine_tools()]


def gpu_names() -> list[str]:
    """List the GPUs' names as nvidia-smi reports them; empty without it."""
    return query("name")
