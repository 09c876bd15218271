"""Commands for those who do not import the engine: ``python -m trellis_train.agents.tune``.

``validate FILE.py[:FUNCTION] [--config CONFIG.yaml] [--task JSON]`` prints
``{"function", "faults": [{"code", "param", "expected", "got", "detail"}]}``: signatures first, then what the
configuration names, then sessions that are played in the sandbox with a scripted model.
``install FOLDER`` installs what a package of a workflow requires.
``plan CONFIG.yaml [--platform cpu|cuda]`` prints the job that a configuration asks for, and in ``faults``
what it names and is not there. ``map CONFIG.yaml [FILE.py[:FUNCTION]] [--platform cpu|cuda]`` prints the same
for a platform, which has the model and the rows: of these only what is here is looked at, and nothing is
fetched (several evaluations are joined in one file if all are here); a file or package is validated as by
``validate``.
All leave with 65 and a sentence on standard error where what they were given is wrong.
"""

import argparse
import importlib.util
import json
import logging
import sys
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any

from trellis_contracts.engine_install import require_engine
from trellis_recipes.workflows.package import REQUIREMENTS_FILE, BadPackage, read_requirements

from trellis_train.agents.tune.mapping import MappedJob, map_config
from trellis_train.agents.tune.places import bring, join_local
from trellis_train.agents.tune.program import WorkflowSource, WorkflowUnusable
from trellis_train.agents.tune.requirements import NotInstalled, cache_folder, install
from trellis_train.agents.tune.services import NO_SERVICES, Services
from trellis_train.agents.tune.settings import load_config
from trellis_train.agents.tune.signature import JUDGE, WORKFLOW, Fault, find_faults
from trellis_train.agents.tune.trial import (
    find_place_faults,
    find_row_faults,
    find_session_faults,
    made_up_task,
)
from trellis_train.platform.activation import is_cpu_platform

EXIT_BAD_INPUT = 65


def main(arguments: list[str]) -> int:
    """Run the command and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.agents.tune")
    commands = parser.add_subparsers(dest="command", required=True)
    validate = commands.add_parser("validate")
    validate.add_argument("place")
    validate.add_argument("--config")
    validate.add_argument("--task")
    installing = commands.add_parser("install")
    installing.add_argument("place")
    plan = commands.add_parser("plan")
    plan.add_argument("config")
    plan.add_argument("--platform", choices=("cpu", "cuda"))
    mapping = commands.add_parser("map")
    mapping.add_argument("config")
    mapping.add_argument("place", nargs="?")
    mapping.add_argument("--platform", choices=("cpu", "cuda"))
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        if given.command == "validate":
            return _validate(given.place, given.config, given.task)
        if given.command == "install":
            install_needed(given.place)
            return 0
        if given.command == "map":
            return _map(given.config, given.place, given.platform)
        job, missing = bring(_read_job(given.config, given.platform), has_weights=True)
        faults = [*missing, *find_place_faults(job)[0]]
        print(json.dumps({**asdict(job), "faults": [asdict(fault) for fault in faults]}))
        return 0
    except (ValueError, WorkflowUnusable, ImportError) as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_INPUT


def _read_job(config: str, platform: str | None = None) -> MappedJob:
    return map_config(*load_config(config), platform=platform or ("cpu" if is_cpu_platform() else "cuda"))


def _validate(place: str, config: str | None, task: str | None) -> int:
    require_engine()
    install_needed(place)
    source = WorkflowSource.read(place)
    tasks = [made_up_task()]
    faults: list[Fault] = []
    services = NO_SERVICES
    job = None
    if config is not None:
        job, missing = bring(_read_job(config), has_weights=False)
        services = Services.of_job(job)
        found_faults, found_tasks = find_place_faults(job)
        faults, tasks = [*missing, *found_faults], found_tasks or tasks
    if task is not None:
        tasks = [_read_task(task)]
    faults += _try(source, place, tasks, services=services, job=job)
    found = {"function": source.function, "faults": [asdict(fault) for fault in faults]}
    print(json.dumps(found))
    return EXIT_BAD_INPUT if faults else 0


def _map(config: str, place: str | None, platform: str | None) -> int:
    job, faults = join_local(_read_job(config, platform))
    found, tasks = find_row_faults(job)
    faults += found
    if place is not None:
        require_engine()
        install_needed(place)
        source = WorkflowSource.read(place)
        faults += _try(source, place, tasks or [made_up_task()], services=Services.of_job(job), job=job)
    print(json.dumps({**asdict(job), "faults": [asdict(fault) for fault in faults]}))
    return 0


def _try(
    source: WorkflowSource,
    place: str,
    tasks: list[dict[str, Any]],
    *,
    services: Services,
    job: MappedJob | None,
) -> list[Fault]:
    """Check a workflow's signatures, then try sessions of it in the sandbox; return the faults."""
    path = Path(place.partition(":")[0])
    # Of a package the source was looked at: what it imports is not here.
    wrong = [] if path.is_dir() else _find_signature_faults(path, source)
    if wrong:  # a session would only fail of the same
        return wrong
    folder = None if path.is_dir() else path.parent
    return find_session_faults(source, tasks, folder=folder, services=services, job=job)


def install_needed(place: str) -> None:
    """Install what a package requires into this machine's cache; ``WorkflowUnusable``."""
    path = Path(place.partition(":")[0]) / REQUIREMENTS_FILE
    if not path.is_file():
        return
    try:
        install(read_requirements(path.read_text(encoding="utf-8")), cache_folder())
    except (BadPackage, NotInstalled, OSError) as error:
        raise WorkflowUnusable(str(error)) from None


def _find_signature_faults(path: Path, source: WorkflowSource) -> list[Fault]:
    if source.is_pickle:
        return []  # looked at when it was written
    module = _load(path)
    faults = find_faults(getattr(module, source.function, None), WORKFLOW)
    return faults + (find_faults(module.judge, JUDGE) if hasattr(module, "judge") else [])


def _read_task(text: str) -> dict[str, Any]:
    task = json.loads(text)
    if not isinstance(task, dict):
        raise ValueError(f"--task must be a JSON object, not {text}")
    return task


def _load(path: Path) -> ModuleType:
    """Load the file as a module; this is the user's own code on the user's own machine."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise WorkflowUnusable(f"'{path}' is not a Python file.")
    module = importlib.util.module_from_spec(spec)
    sys.path.insert(0, str(path.parent))
    sys.modules[path.stem] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise WorkflowUnusable(f"'{path}' cannot be loaded: {type(error).__name__}: {error}") from error
    return module


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
