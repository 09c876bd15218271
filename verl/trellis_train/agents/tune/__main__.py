"""Commands for those who do not import the engine: ``python -m trellis_train.agents.tune``.

``validate FILE.py[:FUNCTION]`` prints ``{"function", "faults": [{"code", "param", "expected", "got"}]}``;
``plan CONFIG.yaml [--platform cpu|cuda]`` prints the job that a configuration asks for. Both leave with 65
and a sentence on standard error where what they were given is wrong.
"""

import argparse
import importlib.util
import json
import logging
import sys
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

from trellis_train.agents.tune.mapping import map_config
from trellis_train.agents.tune.program import WorkflowSource, WorkflowUnusable
from trellis_train.agents.tune.settings import load_config
from trellis_train.agents.tune.signature import JUDGE, WORKFLOW, find_faults, require_engine
from trellis_train.platform.activation import is_cpu_platform

EXIT_BAD_INPUT = 65


def main(arguments: list[str]) -> int:
    """The exit code."""
    parser = argparse.ArgumentParser(prog="python -m trellis_train.agents.tune")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("validate").add_argument("place")
    plan = commands.add_parser("plan")
    plan.add_argument("config")
    plan.add_argument("--platform", choices=("cpu", "cuda"))
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.WARNING, format="%(message)s")
    try:
        if given.command == "validate":
            return _validate(given.place)
        platform = given.platform or ("cpu" if is_cpu_platform() else "cuda")
        job = map_config(*load_config(given.config), platform=platform)
        print(json.dumps(asdict(job)))
        return 0
    except (ValueError, WorkflowUnusable, ImportError) as error:
        print(error, file=sys.stderr)
        return EXIT_BAD_INPUT


def _validate(place: str) -> int:
    require_engine()
    source = WorkflowSource.read(place)
    module = _load(Path(place.partition(":")[0]))
    faults = find_faults(getattr(module, source.function, None), WORKFLOW)
    if hasattr(module, "judge"):
        faults += find_faults(module.judge, JUDGE)
    found = {"function": source.function, "faults": [asdict(fault) for fault in faults]}
    print(json.dumps(found))
    return EXIT_BAD_INPUT if faults else 0


def _load(path: Path) -> ModuleType:
    """The file as a module: a person's own, on the person's own machine."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise WorkflowUnusable(f"'{path}' is no Python file.")
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
