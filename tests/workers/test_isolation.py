"""What a job's process can read: its own files and inputs, and nothing of the platform or of other jobs."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts import namespaces
from trellis_contracts.agents import AgentTask
from trellis_contracts.attempt import ISOLATION_FILE, SPEC_FILE, TOKEN_FILE
from trellis_contracts.evaluation import (
    BenchmarkFiles,
    BenchmarkTask,
    CheckpointSource,
    EvaluationTask,
    Gsm8kOrder,
)
from trellis_contracts.isolation import (
    EXIT_NOT_ISOLATED,
    STATE_VARIABLE,
    Rules,
    isolated_command,
)
from trellis_contracts.recipe import Engine
from trellis_contracts.rewards import RewardFileSource, RewardResources
from trellis_contracts.spec import ExportTask, JobSpec, ModelSource, ServeTask
from trellis_train.agents.tooluse.training.row_selection import REPLAY_FOLDER
from trellis_workers.jobs.isolation import inputs_of, inputs_of_rewards, write_rules
from trellis_workers.jobs.launch import _prepare_training

needs_namespaces = pytest.mark.skipif(
    namespaces.find_problem() is not None, reason="user namespaces are not permitted here"
)
#: Tries to read each path that it is given: what comes of it, as JSON.
SPY = """
import json, os, sys
def read(path):
    try:
        with open(path, "rb") as file:
            return len(file.read(100)) > 0
    except OSError:
        return False
print(json.dumps({"read": {path: read(path) for path in sys.argv[1:]}, "environment": dict(os.environ)}))
"""
MODES = pytest.mark.parametrize(
    ("mode", "is_open"), [pytest.param("required", False, marks=needs_namespaces), ("off", True)]
)


class Place:
    """A platform with a job whose attempt is written, and another job beside it."""

    def __init__(self, platform: Any, spec: JobSpec) -> None:
        self.platform, self.spec = platform, spec
        self.attempt_dir = Path(spec.attempt_dir)
        self.rules = self.attempt_dir / ISOLATION_FILE

    def run(self, code: str, *arguments: str, **variables: str) -> "subprocess.CompletedProcess[str]":
        command = isolated_command(sys.executable, self.rules, [sys.executable, "-c", code, *arguments])
        return subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=60,
            cwd=self.platform.settings.data_root,
            env={**os.environ, **variables},
        )

    def spy(self, *paths: Path | str, **variables: str) -> tuple[list[bool], dict[str, str]]:
        done = self.run(SPY, *map(str, paths), **variables)
        assert done.returncode == 0, done.stderr
        seen = json.loads(done.stdout)
        return list(seen["read"].values()), seen["environment"]


@pytest.fixture
def place(install: Any) -> Callable[[str], Place]:
    def make(mode: str) -> Place:
        platform = install(TRELLIS_JOB_ISOLATION=mode)
        settings = platform.settings
        spec, _ = _prepare_training(settings, platform.add_job())
        other = settings.attempt_dir("job_bbbbbbbbbbbb", 1)
        for folder in (Path(spec.attempt_dir), Path(spec.checkpoint_dir), other):
            folder.mkdir(parents=True)
            (folder / TOKEN_FILE).write_text("secret")
        settings.admin_token_path.write_text("secret")
        Path(spec.model.path).mkdir(parents=True, exist_ok=True)
        (Path(spec.model.path) / "weights").write_text("weights")
        write_rules(settings, spec)
        return Place(platform, spec)

    return make


@pytest.fixture
def service() -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the platform that has a secret in its environment."""
    process = subprocess.Popen(["sleep", "60"], env={"TRELLIS_DATABASE_URL": "postgresql://u:secret@h/d"})
    yield process
    process.kill()
    process.wait()


@MODES
def test_the_platforms_secrets_are_not_readable_from_a_job(
    place: Callable[[str], Place], service: "subprocess.Popen[bytes]", mode: str, is_open: bool
) -> None:
    here = place(mode)
    data_root = here.platform.settings.data_root
    of_service = Path(f"/proc/{service.pid}")

    seen, _ = here.spy(
        data_root / "admin.token",
        data_root / "trellis.db",
        data_root / "jobs" / "job_bbbbbbbbbbbb" / "attempt-1" / TOKEN_FILE,
        of_service / "environ",
        Path(f"{of_service}/root{data_root}/admin.token"),
        "admin.token",  # from the folder that it was started in
    )

    assert seen == [is_open] * 6


@MODES
def test_a_job_reads_its_inputs_and_writes_its_outputs(
    place: Callable[[str], Place], mode: str, is_open: bool
) -> None:
    here = place(mode)
    inputs = [Path(here.spec.model.path) / "weights", here.attempt_dir / TOKEN_FILE]
    assert here.spec.train_data is not None
    inputs += [Path(path) for path in here.spec.train_data.paths]
    writing = "import sys, pathlib\nfor p in sys.argv[1:]:\n    pathlib.Path(p).write_text('x')"

    seen, _ = here.spy(*inputs)
    own = here.run(writing, f"{here.attempt_dir}/own", f"{here.spec.checkpoint_dir}/own")
    of_model = here.run(writing, f"{here.spec.model.path}/weights")

    assert all(seen)
    assert (own.returncode, own.stderr) == (0, "")
    assert (of_model.returncode == 0) is is_open


@needs_namespaces
@pytest.mark.parametrize("is_kept", [True, False])
def test_jobs_that_keep_rows_for_later_ones_write_them(place: Callable[[str], Place], is_kept: bool) -> None:
    here = place("required")
    data_root = here.platform.settings.data_root
    params = {**here.spec.params, "use_online_continual": is_kept}
    write_rules(here.platform.settings, here.spec.model_copy(update={"params": params}))

    done = here.run(f"open({str(data_root / 'jobs' / REPLAY_FOLDER / 'tools.json')!r}, 'w')")

    assert (done.returncode == 0) is is_kept


@needs_namespaces
def test_what_is_hidden_cannot_be_brought_back(place: Callable[[str], Place]) -> None:
    here = place("required")
    data_root = here.platform.settings.data_root
    commands = [
        f"umount {data_root}; umount -l {data_root}; mount -o remount,rw,bind {data_root}",
        f"mkdir -p {here.attempt_dir}/m && mount --bind {data_root.parent} {here.attempt_dir}/m",
        f"nsenter --target {os.getpid()} --mount cat {data_root}/admin.token",
        "echo '|/bin/false' > /proc/sys/kernel/core_pattern",
    ]
    code = f"import subprocess; [subprocess.run(each, shell=True) for each in {commands!r}]"

    done = here.run(code + f"; print(open({str(data_root / 'admin.token')!r}).read())")

    assert "secret" not in done.stdout
    assert "FileNotFoundError" in done.stderr
    assert not (here.attempt_dir / "m" / "data" / "admin.token").exists()


@pytest.mark.parametrize("mode", ["off", pytest.param("required", marks=needs_namespaces)])
def test_a_job_has_no_secret_in_its_environment(place: Callable[[str], Place], mode: str) -> None:
    secrets = {
        "TRELLIS_DATABASE_URL": "a",
        "TRELLIS_REDIS_URL": "b",
        "HF_TOKEN": "c",
        "WANDB_API_KEY": "d",
        "AWS_SECRET_ACCESS_KEY": "e",
    }

    _, environment = place(mode).spy(**secrets, RAY_AUTH_TOKEN_PATH="/t", PLAIN="kept")

    assert not secrets.keys() & environment.keys()
    assert environment["PLAIN"] == "kept"
    assert environment[STATE_VARIABLE] == {"off": "off", "required": "on"}[mode]
    # The recipe is one of reinforcement learning, which joins the cluster.
    assert environment["RAY_AUTH_TOKEN_PATH"] == "/t"


@needs_namespaces
@pytest.mark.parametrize("is_of_the_job", [True, False])
def test_processes_beside_a_job_see_what_it_sees(place: Callable[[str], Place], is_of_the_job: bool) -> None:
    here = place("required")
    waiting = [sys.executable, "-c", "print(flush=True); input()"]
    waiting += [f"{here.attempt_dir}/spec.json"] if is_of_the_job else []
    token = here.platform.settings.admin_token_path
    code = f"import os; print(os.path.exists({str(token)!r}), os.readlink('/proc/self/ns/mnt'))"
    with subprocess.Popen(
        isolated_command(sys.executable, here.rules, waiting),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as first:
        assert first.stdout is not None
        first.stdout.readline()
        view = os.readlink(f"/proc/{first.pid}/ns/mnt")

        command = isolated_command(sys.executable, here.rules, [sys.executable, "-c", code], beside=first.pid)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    seen, own_view = done.stdout.split()
    assert seen == "False"
    assert (own_view == view) is is_of_the_job


@needs_namespaces
def test_links_in_the_data_root_lead_where_they_did(place: Callable[[str], Place]) -> None:
    here = place("required")
    data_root = here.platform.settings.data_root
    blob = data_root / "models" / "mdl_blobs" / "blob"
    blob.parent.mkdir(parents=True)
    blob.write_text("weights")
    model = data_root / "models" / "mdl_linked"
    model.mkdir()
    (model / "weights").symlink_to(blob)
    (data_root / "alias").symlink_to(model)
    Rules("required", str(data_root), read_only=[str(data_root / "alias")]).write(here.rules)

    seen, _ = here.spy(data_root / "alias" / "weights", blob, data_root / "admin.token")

    assert seen == [True, True, False]


@pytest.mark.parametrize(("mode", "code"), [("required", EXIT_NOT_ISOLATED), ("auto", 0)])
def test_where_isolation_is_not_possible_it_is_said_or_refused(
    place: Callable[[str], Place], tmp_path: Path, mode: str, code: int
) -> None:
    here = place(mode)
    (tmp_path / "sitecustomize.py").write_text(
        "from trellis_contracts import namespaces\n"
        "namespaces.find_problem = lambda rules: 'it is forbidden'\n"
    )

    done = here.run(f"import os; print(os.environ[{STATE_VARIABLE!r}])", PYTHONPATH=str(tmp_path))

    assert done.returncode == code
    said = done.stdout if code == 0 else done.stderr
    assert said.endswith("it is forbidden\n")


CHECKPOINT = CheckpointSource(
    job_id="job_c", engine=Engine.VERL_PPO, step=1, path="/data/jobs/job_c/checkpoints/1"
)


def _of_agent(**changes: Any) -> dict[str, Any]:
    return {"agent": AgentTask(kind="tune", **changes)}


def _of_evaluation() -> dict[str, Any]:
    files = BenchmarkFiles(paths={"test": ["/data/b/test"], "train": ["/data/b/train"]}, sha256="0")
    task = BenchmarkTask(label="m", order=Gsm8kOrder(), files=files, scorer_path="/data/scorer.py")
    return {
        "evaluation": EvaluationTask(
            evaluation_id="ev", output_dir="/data/out", checkpoint=CHECKPOINT, benchmarks=[task], seed=0
        )
    }


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"resume_from": "/data/jobs/job_c/checkpoints/2"}, ["/data/jobs/job_c/checkpoints/2"]),
        (_of_agent(workflow_path="/data/workflows/wf:run"), ["/data/workflows/wf"]),
        (
            _of_agent(
                environment_path="/data/environments/e",
                workflow_packages="/data/workflow-packages",
                tool_environments={"t": "/data/environments/t"},
            ),
            ["/data/environments/e", "/data/workflow-packages", "/data/environments/t"],
        ),
        (
            {
                "export": ExportTask(
                    job_id="j",
                    engine=Engine.VERL_PPO,
                    step=1,
                    checkpoint_path=CHECKPOINT.path,
                    output_path="/data/models/new",
                )
            },
            [CHECKPOINT.path],
        ),
        (
            {"serve": ServeTask(endpoint_id="e", served_name="s", checkpoint=CHECKPOINT, max_tokens=1)},
            [CHECKPOINT.path],
        ),
        (_of_evaluation(), [CHECKPOINT.path, "/data/scorer.py", "/data/b/test", "/data/b/train"]),
    ],
    ids=["resumed", "workflow package", "environments", "export", "endpoint", "evaluation"],
)
def test_a_jobs_inputs_are_the_paths_that_its_spec_names(
    place: Callable[[str], Place], changes: dict[str, Any], expected: list[str]
) -> None:
    secret = "/data/admin.token"
    spec = place("off").spec.model_copy(
        update={"name": secret, "params": {"text": secret}, "engine_overrides": [secret], **changes}
    )
    assert spec.train_data is not None

    assert inputs_of(spec) == [spec.model.path, *spec.train_data.paths, *expected]


def test_rewards_read_their_files_and_models() -> None:
    resources = RewardResources(
        files={"f": RewardFileSource(name="f", path="/data/f.py", sha256="0")},
        models={"m": ModelSource(model_id="m", path="/data/models/m")},
    )

    assert inputs_of_rewards(resources) == ["/data/f.py", "/data/models/m"]


@needs_namespaces
@pytest.mark.parametrize(
    "named", ["admin.token", "trellis.db", "jobs", "models", "", "jobs/job_bbbbbbbbbbbb/attempt-1/token"]
)
def test_secrets_and_whole_folders_are_shown_to_nobody(place: Callable[[str], Place], named: str) -> None:
    here = place("required")
    data_root = here.platform.settings.data_root
    other = data_root / "jobs" / "job_bbbbbbbbbbbb" / "attempt-1" / TOKEN_FILE
    Rules("required", str(data_root), read_only=[str(data_root / named)]).write(here.rules)

    seen, _ = here.spy(data_root / "admin.token", data_root / "trellis.db", other)

    assert seen == [False] * 3


@needs_namespaces
def test_links_that_runs_could_have_laid_lead_nowhere(place: Callable[[str], Place]) -> None:
    here = place("required")
    data_root = here.platform.settings.data_root
    other = data_root / "jobs" / "job_bbbbbbbbbbbb"
    (other / "checkpoints").mkdir()
    (other / "checkpoints" / "weights").symlink_to(data_root / "admin.token")
    (other / "step").symlink_to(other / "attempt-1")
    private = data_root / "models" / "mdl_private"
    private.mkdir(parents=True)
    (private / "weights").write_text("weights")
    (here.attempt_dir.parent / "out").symlink_to(private)
    (here.attempt_dir.parent / "key").symlink_to(data_root / "admin.token")
    (private / "key").symlink_to(data_root / "admin.token")
    Rules(
        "required",
        str(data_root),
        writable=[str(here.attempt_dir.parent), str(here.attempt_dir.parent / "out")],
        read_only=[str(other / "checkpoints"), str(other / "step")],
    ).write(here.rules)

    seen, _ = here.spy(
        other / "checkpoints" / "weights",
        other / "attempt-1" / TOKEN_FILE,
        private / "weights",
        here.attempt_dir.parent / "key",
        data_root / "admin.token",
    )

    assert seen == [False] * 5


@needs_namespaces
def test_a_link_of_the_platform_gives_no_right_to_write(place: Callable[[str], Place]) -> None:
    here = place("required")
    data_root = here.platform.settings.data_root
    target, link = data_root / "models" / "mdl_base", data_root / "models" / "mdl_alias"
    target.mkdir(parents=True)
    (target / "weights").write_text("weights")
    link.symlink_to(target)
    Rules("required", str(data_root), writable=[str(link)]).write(here.rules)

    seen, _ = here.spy(link / "weights")
    done = here.run("open(__import__('sys').argv[1], 'w')", f"{link}/weights")

    assert seen == [True]
    assert "Read-only file system" in done.stderr


@needs_namespaces
def test_a_run_cannot_change_its_own_rules(place: Callable[[str], Place]) -> None:
    here = place("required")
    folder = here.attempt_dir
    (folder / SPEC_FILE).write_text("{}")
    code = f"""
import os
for name in {[ISOLATION_FILE, SPEC_FILE, TOKEN_FILE]!r}:
    for change in (lambda p: open(p, "a"), os.unlink, lambda p: os.rename(p, p + ".old")):
        try:
            change({str(folder)!r} + "/" + name)
        except OSError:
            continue
        print("changed", name)
try:
    os.rename({str(folder)!r}, {str(folder)!r} + "-old")
    print("changed")
except OSError:
    pass
open({str(folder)!r} + "/own", "w").close()
"""

    done = here.run(code)

    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@needs_namespaces
def test_links_in_a_circle_lead_nowhere(place: Callable[[str], Place]) -> None:
    here = place("required")
    data_root = here.platform.settings.data_root
    model = data_root / "models" / "mdl_circle"
    model.mkdir(parents=True)
    (model / "weights").write_text("weights")
    (model / "a").symlink_to(data_root / "models" / "b")
    (data_root / "models" / "b").symlink_to(model / "a")
    (model / "deeper").symlink_to(model / "deeper" / "deeper")
    (model / "up").symlink_to(data_root / "models" / "round")
    (data_root / "models" / "round").symlink_to(model)
    Rules("required", str(data_root), read_only=[str(model), str(model / "a")]).write(here.rules)

    seen, _ = here.spy(model / "weights", model / "a", data_root / "models" / "round" / "weights")

    assert seen == [True, False, True]


@needs_namespaces
@pytest.mark.parametrize(("mode", "code"), [("required", EXIT_NOT_ISOLATED), ("auto", 0)])
def test_rules_that_cannot_be_applied_are_said_or_refused(
    place: Callable[[str], Place], mode: Any, code: int
) -> None:
    here = place(mode)
    data_root = here.platform.settings.data_root
    blocked = data_root / "file" / "folder"
    blocked.parent.write_text("not a folder")
    Rules(mode, str(data_root), writable=[str(blocked)]).write(here.rules)

    done = here.run(f"import os; print(os.environ[{STATE_VARIABLE!r}])")

    assert done.returncode == code
    said = done.stdout if code == 0 else done.stderr
    assert str(blocked) in said


@needs_namespaces
@pytest.mark.parametrize(
    ("variable", "value", "file"),
    [
        ("HF_HOME", "", "token"),
        ("HF_HOME", "", "stored_tokens"),
        ("HF_TOKEN_PATH", "/mine", "mine"),
        ("HF_STORED_TOKENS_PATH", "/mine", "mine"),
        ("XDG_CACHE_HOME", "", "huggingface/token"),
        ("XDG_CACHE_HOME", "", "huggingface/stored_tokens"),
    ],
)
def test_logins_of_the_hub_are_hidden_where_they_lie(
    place: Callable[[str], Place], tmp_path: Path, variable: str, value: str, file: str
) -> None:
    path = tmp_path / "hub" / file
    path.parent.mkdir(parents=True)
    path.write_text("secret")

    seen, _ = place("required").spy(path, **{variable: f"{tmp_path}/hub{value}"})

    assert seen == [False]
