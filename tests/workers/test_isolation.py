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
from trellis_contracts.attempt import ISOLATION_FILE, TOKEN_FILE
from trellis_contracts.isolation import (
    EXIT_NOT_ISOLATED,
    STATE_VARIABLE,
    Rules,
    find_paths,
    isolated_command,
)
from trellis_contracts.spec import JobSpec
from trellis_workers.jobs.isolation import write_rules
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
def test_processes_beside_a_job_see_what_it_sees(place: Callable[[str], Place]) -> None:
    here = place("required")
    waiting = isolated_command(
        sys.executable, here.rules, [sys.executable, "-c", "print(flush=True); input()"]
    )
    token = here.platform.settings.admin_token_path
    code = f"import os; print(os.path.exists({str(token)!r}), os.readlink('/proc/self/ns/mnt'))"
    with subprocess.Popen(waiting, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as first:
        assert first.stdout is not None
        first.stdout.readline()
        view = os.readlink(f"/proc/{first.pid}/ns/mnt")

        command = isolated_command(sys.executable, here.rules, [sys.executable, "-c", code], beside=first.pid)
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)

    assert done.stdout.split() == ["False", view], done.stderr


@needs_namespaces
def test_links_in_the_data_root_lead_where_they_did(place: Callable[[str], Place]) -> None:
    here = place("required")
    data_root = here.platform.settings.data_root
    blob = data_root / "elsewhere" / "blob"
    blob.parent.mkdir()
    blob.write_text("weights")
    model = data_root / "linked"
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
        "from trellis_contracts import namespaces\nnamespaces.find_problem = lambda: 'it is forbidden'\n"
    )

    done = here.run(f"import os; print(os.environ[{STATE_VARIABLE!r}])", PYTHONPATH=str(tmp_path))

    assert done.returncode == code
    said = done.stdout if code == 0 else done.stderr
    assert said.endswith("it is forbidden\n")


def test_paths_below_a_folder_are_found_in_all_of_a_document() -> None:
    document = {"a": ["/data/x", {"b": "/data/y/z"}], "c": "/database", "d": 3, "e": None, "/data/key": "w"}

    assert sorted(find_paths(document, Path("/data"))) == ["/data/x", "/data/y/z"]
