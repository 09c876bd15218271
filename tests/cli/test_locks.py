"""The lock files are complete: what is installed is what they say, on every supported Python."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

REQUIREMENTS = Path(__file__).resolve().parents[2] / "requirements"


@pytest.fixture(scope="module")
def relock() -> ModuleType:
    spec = importlib.util.spec_from_file_location("relock", REQUIREMENTS / "relock.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def read_lock(name: str) -> dict[str, str]:
    lines = [line for line in (REQUIREMENTS / name).read_text().splitlines() if not line.startswith("#")]
    pairs = [line.split("==") for line in lines]
    return {canonicalize_name(package): version for package, version in pairs}


def test_the_cpu_lock_holds_everything_that_its_packages_need(relock: ModuleType) -> None:
    roots = relock.direct_requirements(REQUIREMENTS / "cpu.in")

    found, missing = relock.closure(roots)

    assert missing == set()
    assert set(found) == set(read_lock("cpu.lock"))


def test_the_cpu_lock_says_what_is_installed(relock: ModuleType) -> None:
    assert relock.relock_cpu(check=True) is None


def test_every_direct_dependency_says_why_it_is_here() -> None:
    lines = (REQUIREMENTS / "cpu.in").read_text().splitlines()

    unexplained = [line for line in lines if line and not line.startswith("#") and "#" not in line]

    assert unexplained == []


def test_what_pyproject_asks_for_is_in_both_locks() -> None:
    import tomllib

    project = tomllib.loads((REQUIREMENTS.parent / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    wanted = [*project["dependencies"], *extras["api"], *extras["worker"], *extras["train"], *extras["cli"]]

    for lock in ("cpu.lock", "gpu.lock"):
        pinned = read_lock(lock)
        for line in wanted:
            requirement = Requirement(line)
            version = pinned[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), f"{lock}: {line} against {version}"


def test_the_gpu_lock_resolves_for_every_python() -> None:
    command = [sys.executable, str(REQUIREMENTS / "relock.py"), "--gpu", "--check"]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_the_gpu_lock_pins_what_verl_asks_for() -> None:
    pinned = read_lock("gpu.lock")

    chosen = {name: pinned[name] for name in ("verl", "torch", "vllm", "trl", "ray")}

    assert chosen == {"verl": "0.9.1", "torch": "2.11.0", "vllm": "0.24.0", "trl": "1.12.0", "ray": "2.60.0"}


def test_the_images_that_compose_recipes_hold_the_versions_that_run_them() -> None:
    schemas, pinned = read_lock("verl-schema.txt"), read_lock("gpu.lock")

    assert {"verl", "trl", "transformers"} <= set(schemas)
    assert schemas.items() <= pinned.items()
