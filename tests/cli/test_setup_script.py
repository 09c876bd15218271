"""init.sh on machines that lack something: it says what to do instead of failing somewhere."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
#: What the script itself needs of a system.
TOOLS = (
    *("bash", "env", "dirname", "basename", "id", "cat", "cut", "grep", "sha256sum", "flock", "mkdir", "ln"),
    *("find", "sort", "xargs", "rm", "printf"),
)

#: The part of a stand-in for Python that answers `python -m venv --clear FOLDER`.
MAKE_VENV = 'if [ "$1" = -m ] && [ "$2" = venv ]; then mkdir -p "$4/bin"; ln -s "$0" "$4/bin/python"; fi\n'
NOBODY = 65534


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout that was never set up, in a path with spaces."""
    root = tmp_path / "my checkout"
    (root / "requirements").mkdir(parents=True)
    shutil.copy(ROOT / "init.sh", root)
    shutil.copy(ROOT / "pyproject.toml", root)
    for name in ("cpu.lock", "gpu.lock"):
        shutil.copy(ROOT / "requirements" / name, root / "requirements")
    return root


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    """A PATH with only the tools that every system has; tests add to it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, tool
        (folder / tool).symlink_to(found)
    return folder


def write_program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text("#!/bin/sh\n" + text)
    path.chmod(0o755)


def run(
    checkout: Path, programs: Path, *arguments: str, cwd: Path | None = None
) -> "subprocess.CompletedProcess[str]":
    env = {"PATH": str(programs), "HOME": str(checkout.parent / "home"), "LANG": "C.UTF-8"}
    return subprocess.run(
        [str(programs / "bash"), str(checkout / "init.sh"), *arguments],
        env=env,
        cwd=cwd or checkout,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_without_python_it_says_what_to_install(checkout: Path, programs: Path) -> None:
    done = run(checkout, programs, "status")

    assert done.returncode != 0
    assert "Python 3.11 or 3.12" in done.stderr
    assert "apt-get install" in done.stderr


def test_an_unsupported_python_is_not_used(checkout: Path, programs: Path) -> None:
    write_program(programs, "python3", "exit 1\n")

    done = run(checkout, programs, "status")

    assert "Python 3.11 or 3.12" in done.stderr
    assert not (checkout / ".venv").exists()


def test_a_checkout_of_somebody_else_is_a_clear_error(checkout: Path, programs: Path) -> None:
    # Root may write everywhere, so as root the script runs as nobody, in a folder that nobody may read.
    with tempfile.TemporaryDirectory() as folder:
        foreign = Path(folder) / "checkout"
        shutil.copytree(checkout, foreign)
        Path(folder).chmod(0o755)
        foreign.chmod(0o555)
        command = ["bash", str(foreign / "init.sh"), "status"]
        user = NOBODY if os.geteuid() == 0 else None

        done = subprocess.run(
            command, cwd="/", user=user, capture_output=True, text=True, timeout=60, check=False
        )

    assert done.returncode != 0
    assert "cannot be written" in done.stderr


def test_a_pip_that_finds_the_cuda_build_is_told_where_the_cpu_build_is(
    checkout: Path, programs: Path
) -> None:
    # Stands for a machine whose package index has only PyTorch's CUDA build.
    write_program(
        programs,
        "python3.11",
        MAKE_VENV + 'case "$*" in *importlib.metadata*) exit 1 ;; esac\nexit 0\n',
    )

    done = run(checkout, programs, "status")

    assert done.returncode != 0
    assert "TRELLIS_TORCH_INDEX_URL" in done.stderr


def test_it_hands_over_with_the_checkouts_data_root_from_any_folder(
    checkout: Path, programs: Path, tmp_path: Path
) -> None:
    write_program(
        programs,
        "python3.11",
        MAKE_VENV + 'if [ "$2" = trellis_cli ]; then echo "$TRELLIS_DATA_ROOT|$*"; fi\nexit 0\n',
    )

    without_command = run(checkout, programs, cwd=tmp_path)
    with_port = run(checkout, programs, "--port", "8123", cwd=tmp_path)
    with_command = run(checkout, programs, "--cpu", "logs", "api", "-n", "5", cwd=tmp_path)

    assert without_command.stdout.strip() == f"{checkout}/data|-m trellis_cli up"
    assert with_port.stdout.strip() == f"{checkout}/data|-m trellis_cli up --port 8123"
    assert with_command.stdout.strip() == f"{checkout}/data|-m trellis_cli logs api -n 5"


def test_what_is_installed_is_not_installed_again(checkout: Path, programs: Path) -> None:
    write_program(
        programs,
        "python3.11",
        MAKE_VENV + "exit 0\n",
    )

    first = run(checkout, programs, "status")
    second = run(checkout, programs, "status")

    assert "installing cpu.lock" in first.stderr
    assert "installing" not in second.stderr
