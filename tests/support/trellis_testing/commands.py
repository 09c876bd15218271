"""Commands of `trellis` as processes, against the platform of a test."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from trellis_testing.waiting import wait_until

if TYPE_CHECKING:
    from trellis_cli.bench.light_platform import LightPlatform

Done = subprocess.CompletedProcess[str]


def trellis(platform: "LightPlatform", *arguments: str, stdin: str = "", **environment: str) -> Done:
    """The outcome of a command; its caches lie in the platform's folder."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("TRELLIS_")}
    env |= {
        "TRELLIS_DATA_ROOT": str(platform.settings.data_root),
        "TRELLIS_PORT": str(platform.settings.port),
        "XDG_CACHE_HOME": str(cache_of(platform)),
        "COLUMNS": "200",
    }
    return subprocess.run(
        [sys.executable, "-m", "trellis_cli", *arguments],
        env=env | environment,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def cache_of(platform: "LightPlatform") -> str:
    """Where the commands keep what they remember."""
    return str(platform.settings.data_root / "cache")


def trellis_with_workers(platform: "LightPlatform", *arguments: str) -> Done:
    """The outcome of a command that waits for tasks on data; somebody carries them out meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(trellis, platform, *arguments)
        while not running.done():
            wait_until(lambda: running.done() or _has_work(platform), 90, "a task or the end of the command")
            if not running.done():
                platform.carry_out_data_tasks()
        return running.result()


def _has_work(platform: "LightPlatform") -> bool:
    return bool(platform.client.get("/data-tasks", state="queued")["items"])
