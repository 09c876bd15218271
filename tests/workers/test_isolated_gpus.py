"""What CUDA and NCCL need of a machine is there for isolated processes, or the reason is given before."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts import gpu_devices, namespaces
from trellis_contracts.isolation import Rules, isolated_command

needs_namespaces = pytest.mark.skipif(
    namespaces.find_problem() is not None, reason="user namespaces are not permitted here"
)
DEVICES = (
    "nvidia0",
    "nvidiactl",
    "nvidia-uvm",
    "nvidia-caps/nvidia-cap1",
    "nvidia-caps-imex-channels/channel0",
    "infiniband/uverbs0",
    "gdrdrv",
)
WRITE = "import sys; [open(f'{folder}/kernel', 'w').write('x') for folder in sys.argv[1:]]"
LIMITED = """
import pathlib, resource
from trellis_contracts import gpu_devices, namespaces
resource.setrlimit(resource.RLIMIT_MEMLOCK, (65536, 65536))
gpu_devices._FOLDER = pathlib.Path({folder!r})
print(namespaces.find_problem())
"""


@pytest.fixture
def devices(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Makes a machine's device files, each of which is in truth /dev/null."""
    folder = tmp_path / "dev"
    monkeypatch.setattr(gpu_devices, "_FOLDER", folder)

    def make(*names: str) -> list[str]:
        for name in names:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).symlink_to(os.devnull)
        return [str(folder / name) for name in names]

    return make


def test_devices_of_gpus_their_parts_and_the_network_are_tried(devices: Callable[..., list[str]]) -> None:
    made = devices(*DEVICES, "sda", "input/event0")

    found = gpu_devices.list_devices()

    assert sorted(found) == sorted(made[: len(DEVICES)])
    assert gpu_devices.find_obstacle([each for each in found if "infiniband" not in each]) is None


@needs_namespaces
@pytest.mark.parametrize("lost", ["nvidia-caps", "infiniband"])
def test_a_device_that_cannot_be_opened_inside_is_the_reason(
    devices: Callable[..., list[str]], tmp_path: Path, lost: str
) -> None:
    devices(*DEVICES)
    rules = Rules(mode="required", data_root=os.devnull, hidden=[str(tmp_path / "dev" / lost)])

    problem = namespaces.find_problem(rules)

    assert problem is not None
    assert f"/{lost}/" in problem
    assert problem.endswith("cannot be opened inside")


@needs_namespaces
def test_a_driver_that_is_not_loaded_as_a_whole_is_the_reason(devices: Callable[..., list[str]]) -> None:
    devices("nvidiactl", "nvidia0")
    without = namespaces.find_problem()

    devices("nvidia-uvm")

    assert without is not None
    assert "run nvidia-modprobe" in without
    assert namespaces.find_problem() is None


@needs_namespaces
@pytest.mark.skipif(os.geteuid() != 0, reason="only root is exempt from the limit")
@pytest.mark.parametrize("adapter", [[], ["infiniband/uverbs0"]], ids=["no adapter", "an adapter"])
def test_root_locks_memory_as_before_or_the_limit_is_the_reason(
    devices: Callable[..., list[str]], tmp_path: Path, adapter: list[str]
) -> None:
    devices("nvidiactl", "nvidia0", "nvidia-uvm", *adapter)
    code = LIMITED.format(folder=str(tmp_path / "dev"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    can_raise = bool(
        int(Path("/proc/self/status").read_text().partition("CapEff:")[2].split()[0], 16) & 1 << 24
    )
    is_obstacle = bool(adapter) and not can_raise
    assert ("root can lock only 65536 bytes" in done.stdout) == is_obstacle, done.stdout


@needs_namespaces
def test_caches_and_sockets_of_cuda_in_the_data_root_can_be_written(install: Any, tmp_path: Path) -> None:
    settings = install(TRELLIS_JOB_ISOLATION="required").settings
    variables = ("CUDA_CACHE_PATH", "CUDA_MPS_PIPE_DIRECTORY", "TORCH_EXTENSIONS_DIR", "DG_JIT_CACHE_DIR")
    folders = {name: str(settings.data_root / "caches" / name.lower()) for name in variables}
    for folder in folders.values():
        Path(folder).mkdir(parents=True)
    rules = tmp_path / "rules"
    Rules(mode="required", data_root=str(settings.data_root)).write(rules)

    command = isolated_command(sys.executable, rules, [sys.executable, "-c", WRITE, *folders.values()])
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **folders})

    assert done.returncode == 0, done.stderr
    assert all(Path(folder, "kernel").read_text() == "x" for folder in folders.values())
