"""What the platform costs and saves around the engine: the same GRPO run on it and as bare verl.

The bare side runs the very command that the job's preview offers for replay. On a CPU it needs the plugins
that teach verl and vLLM the CPU, which load by themselves; nothing else of the platform takes part in it.
"""

import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from trellis_cli.client import ApiClient
from trellis_cli.demo.starter import make_starter
from trellis_cli.demo.steps import ensure_dataset, ensure_model
from trellis_cli.errors import Problem
from trellis_cli.services.platform import REPOSITORY_ROOT
from trellis_cli.services.temporary import temporary_platform

from trellis_tools.bench.result import Result

STEPS = 8
#: The first steps warm caches up on both sides.
WARM_UP_STEPS = 2
STEP_KEY = "timing_s/step"
STEP_TIME_BOUND = 0.9
FIRST_STEP_BOUND = 1.15
PATIENCE_S = 900.0
_BARE_STEP = re.compile(r"\bstep:(\d+) - .*?\btiming_s/step:([0-9.eE+-]+)")


def measure_training() -> list[Result]:
    """Run both sides once; step time and time to the first step."""
    with temporary_platform() as client:
        request = make_request(client)
        ours = run_ours(client, request)
        command = client.post("/jobs/preview", request)["command"]
        prepared = client.get(f"/jobs/{ours.job}")["attempt"]
        with tempfile.TemporaryDirectory(prefix="trellis-bare-") as folder:
            bare = run_bare(point_at_data(command, ours.job, prepared), Path(folder))
    return [
        Result("step_time", ours.step_s, bare.step_s, "s", bound=STEP_TIME_BOUND),
        Result("time_to_first_step", ours.first_step_s, bare.first_step_s, "s", bound=FIRST_STEP_BOUND),
    ]


class Timing:
    """What a run took."""

    def __init__(self, job: str, first_step_s: float, step_times: list[float]) -> None:
        if len(step_times) <= WARM_UP_STEPS:
            raise Problem(f"only {len(step_times)} steps have timings")
        self.job = job
        self.first_step_s = first_step_s
        self.step_s = statistics.median(step_times[WARM_UP_STEPS:])


def make_request(client: ApiClient) -> dict[str, Any]:
    """Build the request for a GRPO job on the starter model without validation or extra checkpoints."""
    root = Path(os.environ["TRELLIS_DATA_ROOT"])
    make_starter(root / "starter", 1)
    return {
        "name": "benchmark",
        "recipe": "grpo",
        "preset": "cpu-tiny",
        "model": ensure_model(client, "starter", {"kind": "local", "path": "starter/model"}),
        "dataset": ensure_dataset(client, root / "starter/data/rl_train.jsonl", "train"),
        "validation_dataset": ensure_dataset(client, root / "starter/data/rl_validation.jsonl", "validation"),
        "params": {"total_steps": STEPS, "validate_before": False, "validate_every": 0, "save_every": 0},
        "seed": 1,
    }


def run_ours(client: ApiClient, request: dict[str, Any]) -> Timing:
    """Time a job from the request to the first step shown by the API, and every step as verl measures it."""
    started = time.monotonic()
    job = client.post("/jobs", request)["id"]
    first_step_s: float | None = None
    while time.monotonic() - started < PATIENCE_S:
        series = client.get(f"/jobs/{job}/metrics", keys=STEP_KEY)["series"]
        steps = series[0]["values"] if series else []
        if steps and first_step_s is None:
            first_step_s = time.monotonic() - started
        state = client.get(f"/jobs/{job}")
        if state["state"] in ("failed", "crashed", "stopped"):
            raise Problem(f"job {job} {state['state']}: {state['failure']}")
        if state["state"] == "succeeded" and first_step_s is not None:
            return Timing(job, first_step_s, [value for value in steps if value is not None])
        time.sleep(0.2)
    raise Problem(f"job {job} did not finish within {PATIENCE_S:.0f} s")


def point_at_data(command: str, job: str, attempt: int) -> str:
    """Point the replay command at the data of the job that ran instead of a job still to be created."""
    return re.sub(
        r"jobs/job_[a-z2-7]+/attempt-\d+/prepared", f"jobs/{job}/attempt-{attempt}/prepared", command
    )


def run_bare(command: str, folder: Path) -> Timing:
    """Run the bare engine in its own process group and time each step from its console output."""
    command = re.sub(r"trainer\.default_local_dir=\S+", f"trainer.default_local_dir={folder}", command)
    env = {name: value for name, value in os.environ.items() if not name.startswith(("TRELLIS_", "RAY_"))}
    env |= {"PATH": f"{Path(sys.executable).parent}:{env['PATH']}", "PYTHONUNBUFFERED": "1"}
    started = time.monotonic()
    first_step_s: float | None = None
    times: list[float] = []
    last_lines: list[str] = []
    with subprocess.Popen(  # noqa: S602 - the command that the API printed for this shell
        command,
        shell=True,
        executable="/bin/bash",
        cwd=REPOSITORY_ROOT,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    ) as process:
        try:
            for line in process.stdout or ():
                last_lines = [*last_lines[-20:], line]
                if found := _BARE_STEP.search(line):
                    first_step_s = first_step_s or time.monotonic() - started
                    times.append(float(found.group(2)))
                if time.monotonic() - started > PATIENCE_S:
                    raise Problem("the bare engine did not finish in time")
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGTERM)
    if process.returncode or first_step_s is None:
        raise Problem(f"the bare engine failed ({process.returncode}):\n{''.join(last_lines)}")
    return Timing("", first_step_s, times)
