"""One real platform for the tests of this folder: Redis, Ray, API, worker and beat in a folder of its own.

It is started when the first test asks for it and ended by pid after the last. Nothing is replaced: jobs
are launched over HTTP, and what trains is the engine. The tests kill its processes and look at what is left.
"""

import contextlib
import os
import shutil
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest
from trellis_cli.client import ApiClient
from trellis_cli.demo import starter as demo
from trellis_cli.demo import steps
from trellis_cli.services.platform import REPOSITORY_ROOT, Platform, load_platform
from trellis_cli.services.ports import pick_free
from trellis_cli.services.process import wait_until_gone
from trellis_cli.services.supervisor import Supervisor
from trellis_cli.waiting import wait_for_dataset
from trellis_testing.benchmark_sets import GSM8K
from trellis_testing.waiting import wait_until
from trellis_tools.chaos.accounts import read_kept, read_spool
from trellis_tools.chaos.ground import list_left_of
from trellis_tools.chaos.processes import kill_all, list_tree

#: Asked before ``trellis_environment`` takes the caller's settings away.
BENCHMARKS = os.environ.get("TRELLIS_BENCHMARK_DIR", REPOSITORY_ROOT.parent / "shared" / "data")
FINISHED = ("stopped", "succeeded", "failed", "crashed")
#: Long enough for a first start on two busy cores.
JOB_TIMEOUT_S = 420.0
#: Of the starter model and its data, which the demonstration and the tests share.
SEED = 1
#: Of the two trainings whose results become models; both are short.
SFT_STEPS, GRPO_STEPS = 3, 2


@contextlib.contextmanager
def trellis_environment(variables: dict[str, str]) -> Iterator[None]:
    """These settings of the platform and none of the caller's own."""
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("TRELLIS_")]:
            patch.delenv(name)
        for name, value in variables.items():
            patch.setenv(name, value)
        yield


@dataclass
class Rig:
    """A running platform, and hands to break it with."""

    platform: Platform
    supervisor: Supervisor
    environment: dict[str, str]
    client: ApiClient = field(init=False)

    # -- the platform ----------------------------------------------------------------------

    def inside(self, **more: str) -> contextlib.AbstractContextManager[None]:
        """The environment of this platform, with further settings, instead of the caller's."""
        return trellis_environment({**self.environment, **more})

    def start(self, **settings: str) -> None:
        """Start what is not running."""
        with self.inside(**settings):
            self.supervisor.up()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """With the supervisor at work, which the tests otherwise do without: they look at what stays dead."""
        with self.inside():
            self.supervisor.watch()
            try:
                yield
            finally:
                self.supervisor.watcher.end()

    def end(self) -> None:
        """End everything."""
        with self.inside():
            self.supervisor.down()

    def kill(self, *names: str) -> None:
        """SIGKILL services with all their processes, at the same moment."""
        leaders = [service.pid for service in self.supervisor.services if service.name in names]
        assert len(leaders) == len(names)
        assert all(leaders), f"{names} do not all run"
        assert not kill_all([each for pid in leaders for each in list_tree(pid)])

    def kill_leader(self, name: str) -> None:
        """SIGKILL the first process of a service; what it started lives on."""
        (leader,) = (service.record for service in self.supervisor.services if service.name == name)
        assert leader is not None, f"{name} does not run"
        leader.send(signal.SIGKILL)
        wait_until_gone([leader], 10)

    def count_used_slots(self) -> int:
        return int(self.client.get("/monitoring/dashboard")["slots"]["used"])

    # -- what jobs need --------------------------------------------------------------------

    def starter(self) -> dict[str, str]:
        """Ids of the starter model and of its datasets; made and uploaded at the first call."""
        root = self.platform.settings.data_root
        folder = root / "starter" / f"seed-{SEED}"
        demo.make_starter(folder, SEED)
        source = {"kind": "local", "path": str((folder / "model").relative_to(root))}
        ids = {"model": steps.ensure_model(self.client, f"starter-seed{SEED}", source)}
        for name in ("sft", "rl_train", "rl_validation"):
            file = folder / "data" / f"{name}.jsonl"
            ids[name] = steps.ensure_dataset(self.client, file, f"addition-{name}-seed{SEED}")
        return ids

    def upload(self, file: Path, name: str) -> dict[str, Any]:
        """A dataset with the rows of a file."""
        made = self.client.upload("/datasets", file, {"name": name})
        return wait_for_dataset(self.client, made["id"], timeout_s=120)

    def make_environment(
        self, name: str, kind: str, parameters: dict[str, Any], *, timeout_s: float = 120
    ) -> dict[str, Any]:
        """An environment of agents, once it is ready."""
        made = self.client.post("/environments", {"name": name, "kind": kind, "parameters": parameters})

        def look() -> dict[str, Any] | None:
            found: dict[str, Any] = self.client.get(f"/environments/{made['id']}")
            assert found["state"] != "failed", found["reason"]
            return found if found["state"] == "ready" else None

        found = wait_until(look, timeout_s, "the environment is ready", pause_s=0.3)
        assert found is not None
        return found

    def launch(self, recipe: str, name: str, **params: Any) -> str:
        """A job of the starter model that neither validates nor saves before its end unless told to."""
        starter = self.starter()
        quiet = {"validate_every": 0, "save_every": 0}
        if recipe == "grpo":
            quiet["validate_before"] = False
        request = {
            "name": name,
            "recipe": recipe,
            "preset": demo.PRESET,
            "model": starter["model"],
            "dataset": starter["sft" if recipe == "sft" else "rl_train"],
            "params": {**quiet, **params},
        }
        return str(self.client.post("/jobs", request)["id"])

    def train_to_model(self, recipe: str, name: str, *, model: str, dataset: str, **params: Any) -> str:
        """Id of a job that has succeeded, and whose result has become a model of this name."""
        request = {
            "name": f"{recipe} to {name}",
            "recipe": recipe,
            "preset": demo.PRESET,
            "model": model,
            "dataset": dataset,
            "params": {"validate_every": 0, "save_every": 0, **params},
            "export_as": {"name": name},
        }
        job_id = str(self.client.post("/jobs", request)["id"])
        job = self.wait_for_state(job_id, "succeeded")
        assert job["export_as"]["problem"] is None
        self.wait_for_state(job["export_as"]["job"]["id"], "succeeded")
        return job_id

    def promised_model(self, job_id: str) -> dict[str, Any]:
        """The model that was promised with a training."""
        export = self.job(self.job(job_id)["export_as"]["job"]["id"])
        model: dict[str, Any] = self.client.get(f"/models/{export['exported_model']['id']}")
        assert model["state"] == "ready"
        return model

    # -- what jobs do ----------------------------------------------------------------------

    def job(self, job_id: str) -> dict[str, Any]:
        return dict(self.client.get(f"/jobs/{job_id}"))

    def wait_for_state(
        self, job_id: str, *states: str, timeout_s: float = JOB_TIMEOUT_S, pause_s: float = 0.1
    ) -> dict[str, Any]:
        """The job once it is in one of the states; one that ended in another tells its reason."""

        def look() -> dict[str, Any] | None:
            job = self.job(job_id)
            if job["state"] in FINISHED and job["state"] not in states:
                failure = job["failure"] or {}
                lines = "\n".join(failure.get("last_lines", [])[-20:])
                pytest.fail(f"{job['name']} {job['state']}: {failure.get('reason')}\n{lines}")
            return job if job["state"] in states else None

        found = wait_until(look, timeout_s, f"{job_id} in {states}", pause_s=pause_s)
        assert found is not None
        return found

    def wait_for_step(self, job_id: str, step: int) -> int:
        """The step once the run has come so far, by its own account: the API may be away."""

        def look() -> int:
            latest = self.latest_step(job_id)
            if latest < step:
                ends = [event for event in self.spool(job_id) if event.kind == "outcome"]
                assert not ends, f"it ended before step {step}: {ends[-1].reason}"
            return latest if latest >= step else 0

        return wait_until(look, JOB_TIMEOUT_S, f"{job_id} at step {step}", pause_s=0.1)

    def latest_step(self, job_id: str) -> int:
        """The last step whose metrics the run has written to its spool."""
        return max((event.step for event in self.spool(job_id) if event.kind == "metrics"), default=0)

    def spool(self, job_id: str, attempt: int | None = None) -> list[Any]:
        """Everything that the processes of the run wrote down, whether or not the platform got it."""
        return read_spool(self.platform.settings.job_dir(job_id), attempt)

    def stored_metrics(self, job_id: str) -> dict[tuple[str, int], float | None]:
        """Every point that the API has; one that it has twice fails here."""
        kept = read_kept(self.client, job_id)
        assert not kept.faults
        return kept.points

    def stored_lines(self, job_id: str) -> list[str]:
        """Every line of output that the API has, numbered without a gap."""
        kept = read_kept(self.client, job_id)
        assert not kept.faults
        return kept.lines

    # -- what jobs are made of -------------------------------------------------------------

    def find_process(self, job_id: str, module: str) -> psutil.Process | None:
        """The process of a job that runs a module of ours (not the subreaper that holds it)."""
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                command = process.cmdline()
                if module in command and job_id in command[-1] and "subreaper" not in " ".join(command):
                    return process
        return None

    def list_processes(self, job_id: str) -> list[str]:
        """What still runs of a job: by its id, and whatever is busy on this platform's cluster."""
        return list_left_of(self.supervisor, [job_id], is_idle=True)

    def expect_nothing_left(self, job_id: str) -> None:
        """No process of the job runs, and its slot is free."""
        left: list[str] = ["?"]

        def look() -> bool:
            left[:] = self.list_processes(job_id)
            return not left

        try:
            wait_until(look, 20, "no process of the job is left", pause_s=0.5)
        except AssertionError as error:
            raise AssertionError("\n".join([str(error), *left])) from None
        assert self.count_used_slots() == 0


@pytest.fixture(scope="session")
def running_platform(request: pytest.FixtureRequest) -> Iterator[Rig]:
    """The platform. Its folder has a short name, as Ray's sockets have little room for theirs."""
    folder = Path(tempfile.mkdtemp(prefix="tre2e-", dir="/tmp"))
    environment = {
        "TRELLIS_DATA_ROOT": str(folder),
        "TRELLIS_PORT": str(pick_free(1)[0]),
        "TRELLIS_PLATFORM": "cpu",
        "TRELLIS_SLOTS": "1",
        "TRELLIS_LAUNCH_TIMEOUT_S": "5",
        "TRELLIS_BENCHMARK_MIRROR": str(Path(BENCHMARKS).resolve()),
    }
    with trellis_environment(environment):
        platform = load_platform()
    rig = Rig(platform, Supervisor(platform, print), environment)
    failures_before = request.session.testsfailed
    try:
        rig.start()
        rig.client = ApiClient(platform.url, platform.settings.admin_token_path.read_text().strip())
        yield rig
    finally:
        rig.end()
        if request.session.testsfailed == failures_before:
            shutil.rmtree(folder)
        else:
            print(f"\nlogs and jobs of the platform under test: {folder}")


@pytest.fixture
def rig(running_platform: Rig) -> Iterator[Rig]:
    """The platform, whole at the start of each test and without jobs at its end."""
    running_platform.start()
    yield running_platform
    running_platform.start()
    client = running_platform.client
    active = list(client.pages("/jobs", state=["queued", "launching", "running", "stopping"]))
    for job in active:
        process = running_platform.find_process(job["id"], "trellis_train.entrypoint")
        client.post(f"/jobs/{job['id']}/stop")
        if process is not None:
            process.kill()  # the test is over: nobody waits for a checkpoint
    for job in active:
        running_platform.wait_for_state(job["id"], *FINISHED, timeout_s=90)


@pytest.fixture(scope="session")
def demonstration(running_platform: Rig) -> dict[str, Any]:
    """What `./init.sh demo` does and prints, done once: SFT, then GRPO from its checkpoint."""
    with running_platform.inside():
        return demo.run_demo(running_platform.platform, seed=SEED)


@pytest.fixture(scope="session")
def adapter_training(running_platform: Rig) -> str:
    """A job of SFT that left an adapter, which became a model at once."""
    starter = running_platform.starter()
    chosen = {"model": starter["model"], "dataset": starter["sft"], "total_steps": SFT_STEPS, "lora_rank": 4}
    return running_platform.train_to_model("sft", "taught", **chosen)


@pytest.fixture(scope="session")
def second_training(running_platform: Rig, adapter_training: str) -> str:
    """A job of GRPO that began at the model made of the adapter, and became a model too.

    Its questions are those of GSM8K; sums, where they are not there.
    """
    rows: dict[str, Any] = {"dataset": running_platform.starter()["rl_train"]}
    if GSM8K["train"].is_file():
        rows = {"dataset": running_platform.upload(GSM8K["train"], "gsm8k")["id"], "reward": "gsm8k"}
    return running_platform.train_to_model(
        "grpo",
        "reinforced",
        model=running_platform.promised_model(adapter_training)["id"],
        total_steps=GRPO_STEPS,
        batch_size=8,
        mini_batch_size=8,
        max_prompt_length=1024,
        max_response_length=32,
        validate_before=False,
        **rows,
    )
