"""The way of a user's job on this machine: API, queue, Ray, engine and back, on a platform of its own."""

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from trellis_contracts.states import FINISHED

from trellis_cli.client import ApiClient
from trellis_cli.demo.steps import ensure_dataset, register_folder
from trellis_cli.errors import Problem
from trellis_cli.gpu_check.check_results import Ground, Row, State
from trellis_cli.gpu_check.training import FULL, GRPO_PARAMS, SFT_PARAMS, STEPS
from trellis_cli.services.temporary import temporary_platform

START, ONE, TWO, ALL, ROOM = (
    "platform: start",
    "platform: a job",
    "platform: two jobs at once",
    "platform: RL on all GPUs",
    "platform: preempted evaluation",
)
#: Kernels are compiled for a machine that does it for the first time.
LIMIT_S = 900.0
PAUSE_S = 0.5
STARTER = "starter"


def check_platform(ground: Ground) -> Iterator[Row]:
    """Start a platform and send jobs through it; one row a check."""
    started = time.monotonic()
    try:
        with temporary_platform() as client:
            yield from _check_jobs(client, ground, started)
    except Problem as problem:
        yield Row(START, "failing", problem.message, time.monotonic() - started)


def _check_jobs(client: ApiClient, ground: Ground, started: float) -> Iterator[Row]:
    dashboard = client.get("/monitoring/dashboard")
    slots = int(dashboard["slots"]["total"])
    state: State = "ok" if dashboard["platform"] == ground.platform else "failing"
    yield Row(START, state, f"{slots} slot(s) on {dashboard['platform']}", time.monotonic() - started)
    jobs = Jobs(client, ground)
    yield run_check(ONE, jobs.run_one)
    yield run_check(TWO, jobs.run_two) if slots > 1 else Row(TWO, "skipped", "only one slot")
    yield run_check(ALL, lambda: jobs.run_all(slots))
    if ground.platform == "cuda":
        yield run_check(ROOM, lambda: jobs.displace(slots))
    else:
        yield Row(ROOM, "skipped", "evaluations take no slot on a CPU")


def run_check(name: str, check: Callable[[], str]) -> Row:
    """Run a check and return its row: what it reports, or how it failed."""
    started = time.monotonic()
    try:
        detail = check()
    except Problem as problem:
        return Row(name, "failing", problem.message, time.monotonic() - started)
    return Row(name, "ok", detail, time.monotonic() - started)


class Jobs:
    """Jobs on the starter model, by a client of the platform."""

    def __init__(self, client: ApiClient, ground: Ground) -> None:
        self._client, self._ground = client, ground
        self._model: str | None = None

    def run_one(self) -> str:
        """Train by SFT; its steps and its checkpoint are to be read from the API."""
        job = self._wait(self._launch_sft("one"))
        steps = self._count_steps(job["id"], "train/loss")
        checkpoints = len(list(self._client.pages(f"/jobs/{job['id']}/checkpoints")))
        if steps != STEPS or not checkpoints:
            raise Problem(f"the API shows {steps} steps and {checkpoints} checkpoints for {job['id']}")
        return f"{steps} steps of sft, checkpoint in the API, devices {self._devices(job)}"

    def run_two(self) -> str:
        """Train two jobs side by side, each on devices of its own."""
        first, second = self._launch_sft("first"), self._launch_sft("second")
        ended = [self._wait(first), self._wait(second)]
        if max(job["started_at"] for job in ended) > min(job["finished_at"] for job in ended):
            raise Problem("the second job started after the first had finished")
        devices = [self._devices(job) for job in ended]
        if self._ground.platform == "cuda" and devices[0] == devices[1]:
            raise Problem(f"both jobs got device {devices[0]}")
        return f"both ran in parallel, devices {devices[0]} and {devices[1]}"

    def run_all(self, gpus: int) -> str:
        """Train by GRPO on every GPU."""
        self._wait(self._launch_grpo(gpus))
        return f"{STEPS} steps of grpo on {gpus} slot(s)"

    def displace(self, gpus: int) -> str:
        """Ask for all GPUs while an evaluation holds one: it is preempted, then goes on to its end."""
        order = {
            "benchmark": "custom",
            "dataset": self._dataset("rl_validation"),
            "scorer": {"kind": "exact"},
        }
        plan = {"targets": [{"kind": "model", "model": self._starter()}], "benchmarks": [order]}
        evaluation = self._client.post("/evaluations", plan)["items"][0]["id"]
        self._look(f"/evaluations/{evaluation}", lambda found: found["state"] == "running")
        training = self._launch_grpo(gpus)
        self._look(f"/evaluations/{evaluation}", lambda found: found["preempted"])
        self._wait(training)
        self._look(f"/evaluations/{evaluation}", lambda found: found["state"] == "succeeded")
        return f"preempted by a training job on {gpus} GPU(s) and finished afterwards"

    def _launch_sft(self, name: str) -> str:
        return self._launch("sft", {**SFT_PARAMS, **FULL}, rows="sft", gpus=1, name=name)

    def _launch_grpo(self, gpus: int) -> str:
        return self._launch("grpo", {**GRPO_PARAMS, **FULL}, rows="rl_train", gpus=gpus, name="grpo")

    def _launch(self, recipe: str, params: dict[str, Any], *, rows: str, gpus: int, name: str) -> str:
        request = {
            "name": f"gpu-check {name}",
            "recipe": recipe,
            "model": self._starter(),
            "dataset": self._dataset(rows),
            "params": {**params, "total_steps": STEPS},
            "resources": {"gpus": gpus},
        }
        return str(self._client.post("/jobs", request)["id"])

    def _starter(self) -> str:
        if self._model is None:
            root = Path(os.environ["TRELLIS_DATA_ROOT"])
            self._model = register_folder(self._client, root, self._ground.model, STARTER)
        return self._model

    def _dataset(self, rows: str) -> str:
        return ensure_dataset(self._client, self._ground.data / f"{rows}.jsonl", rows)

    def _wait(self, job: str) -> dict[str, Any]:
        found = self._look(f"/jobs/{job}", lambda each: each["state"] in FINISHED)
        if found["state"] != "succeeded":
            raise Problem(f"{job} {found['state']}: {(found['failure'] or {}).get('reason')}")
        return found

    def _look(self, path: str, is_done: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        ends = time.monotonic() + LIMIT_S
        while time.monotonic() < ends:
            found: dict[str, Any] = self._client.get(path)
            if is_done(found):
                return found
            time.sleep(PAUSE_S)
        raise Problem(f"{path} is {found['state']} after {LIMIT_S:.0f} s: {found.get('phase') or ''}")

    def _count_steps(self, job: str, key: str) -> int:
        (series,) = self._client.get(f"/jobs/{job}/metrics", keys=key)["series"]
        return len(series["steps"])

    def _devices(self, job: dict[str, Any]) -> str:
        manifest = self._client.get(f"/jobs/{job['id']}/manifest")["manifest"]
        return str(manifest["hardware"]["visible_devices"])
