"""`./init.sh check gpu-lock`: install gpu.lock apart, import every module, test what needs no GPU.

By hand or nightly: it downloads some 6 GB, takes 12 GB of disk and half an hour of two cores, and runs only
where it is named. flash-attn is left out, which is built against CUDA; the platform works without it.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from trellis_cli.services.platform import REPOSITORY_ROOT

from trellis_tools.ci.packages import ROOTS
from trellis_tools.ci.runner import FAST, SHARED_CORES

REQUIREMENTS = REPOSITORY_ROOT / "requirements"
#: The Python of the images for GPUs comes first.
PYTHONS = ("python3.12", "python3.11")
NOT_INSTALLED = "flash-attn"
#: What the tests import and no GPU machine needs; at the versions of cpu.lock.
TEST_TOOLS = ("hypothesis", "pytest-timeout", "sortedcontainers")
#: Tests that need no device. Those that start engines of the CPU build are not among them.
TESTS = (
    "tests/recipes",
    "tests/train/algorithms",
    "tests/train/data",
    "tests/train/hooks",
    "tests/train/preference",
    "tests/train/rewards",
    "tests/train/rollout",
    "tests/train/supervise",
)
MIN_FREE_BYTES = 14 * 1024**3


class CannotCheck(Exception):
    """This machine lacks what the check needs."""


def find_python() -> str:
    """Find the interpreter to install into, which must be one that the lock file supports."""
    for name in PYTHONS:
        found = shutil.which(name)
        if found and subprocess.run([found, "-c", "import venv"], capture_output=True).returncode == 0:  # noqa: S603
            return found
    raise CannotCheck(f"none of {', '.join(PYTHONS)} runs here: install one of them with venv")


def list_packages() -> list[str]:
    """List the pinned packages to install."""
    pins = [line for line in _read("gpu.lock") if not line.startswith(f"{NOT_INSTALLED}==")]
    names = {line.partition("==")[0] for line in pins}
    tools = [line for line in _read("cpu.lock") if line.partition("==")[0] in set(TEST_TOOLS) - names]
    return pins + tools


def _read(name: str) -> list[str]:
    return [line for line in (REQUIREMENTS / name).read_text().splitlines() if "==" in line]


def install(folder: Path) -> Path:
    """Make an environment with the lock and this checkout; its interpreter."""
    run([find_python(), "-m", "venv", str(folder)])
    python = folder / "bin" / "python"
    pins = list_packages()
    # uv_pip.py hands pip's indexes and certificates to uv.
    uv = [str(python), str(REQUIREMENTS / "uv_pip.py"), _find_uv(), "install", "--no-deps", "--quiet"]
    build = [line for line in pins if line.startswith("setuptools==")]
    run([*uv, *build, "wheel"])
    run([*uv, "--build-constraints", str(REQUIREMENTS / "gpu.lock"), *pins])
    run([*uv, "--no-build-isolation", "-e", str(REPOSITORY_ROOT)])
    return python


def _find_uv() -> str:
    beside = Path(sys.executable).with_name("uv")
    found = str(beside) if beside.exists() else shutil.which("uv")
    if found is None:
        raise CannotCheck("uv is not installed: pip install uv")
    return found


def run(command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
    """Run one command with its output shown; raises where it fails."""
    subprocess.run(command, check=True, cwd=REPOSITORY_ROOT, env={**os.environ, **(environment or {})})  # noqa: S603


def import_everything(python: Path) -> dict[str, str]:
    """Import all our modules; return those that fail, with the reason."""
    script = Path(__file__).with_name("import_all.py")
    failures: dict[str, str] = {}
    for package in ROOTS:
        done = subprocess.run(  # noqa: S603
            [str(python), str(script), package], capture_output=True, text=True, cwd=REPOSITORY_ROOT
        )
        if done.returncode:
            failures[package] = done.stderr[-500:]
        else:
            failures |= json.loads(done.stdout.splitlines()[-1])
    return failures


def check(folder: Path) -> bool:
    """Install, import, test; True when all of it passes."""
    if (free := shutil.disk_usage(folder).free) < MIN_FREE_BYTES:
        needed = MIN_FREE_BYTES // 1024**3
        raise CannotCheck(f"{free / 1024**3:.1f} GiB are free for {folder}, {needed} are needed: set TMPDIR")
    python = install(folder / "venv")
    failures = import_everything(python)
    for module, reason in failures.items():
        print(f"{module}: {reason}")
    print(f"{len(failures)} modules cannot be imported", flush=True)
    tests = [str(python), "-m", "pytest", *TESTS, "-q", "-m", FAST, "-p", "no:cacheprovider"]
    done = subprocess.run(tests, cwd=REPOSITORY_ROOT, env={**os.environ, **SHARED_CORES})  # noqa: S603
    return not failures and done.returncode == 0


def main() -> int:
    """Check in a temporary folder, which is removed."""
    with tempfile.TemporaryDirectory(prefix="trellis-gpu-lock-") as folder:
        try:
            return 0 if check(Path(folder)) else 1
        except CannotCheck as problem:
            print(problem, file=sys.stderr)
        except subprocess.CalledProcessError as error:
            print(f"{' '.join(map(str, error.cmd[:6]))} ... ended with {error.returncode}", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main())
