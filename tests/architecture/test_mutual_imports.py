"""Domains of the API that import each other: few, each for a reason, and none that is new."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

API = Path(__file__).parents[2] / "backend" / "trellis_api"
#: Anyone imports it, and it imports no domain.
CORE = "core"
#: Pairs that import each other, and why.
ALLOWED = {
    ("data_tasks", "datasets"): "tasks name and lock the datasets that they fill, which list their tasks",
    ("endpoints", "jobs"): "an endpoint runs as a job, and jobs share the GPUs and ask models of endpoints",
    ("evaluations", "jobs"): "an evaluation runs as a job, and jobs are evaluated while they train",
    ("jobs", "models"): "jobs start from models, and models are made from the checkpoints of jobs",
    ("jobs", "monitoring"): "jobs are fitted to the machines that are measured, whose dashboard shows jobs",
    ("jobs", "rewards"): "jobs score with rewards, which are tried out on the responses that jobs recorded",
}
#: The same of packages in `jobs`; all of them may import its own modules, which put them together.
ALLOWED_IN_JOBS = {
    ("alarms", "events"): "alarms are published as events, and the stream of events begins with the alarms",
    ("checkpoints", "evaluating"): "checkpoints show their scores, and scores decide which checkpoints stay",
}


def list_domains() -> list[str]:
    return sorted(path.parent.name for path in API.glob("*/__init__.py") if path.parent.name != CORE)


def imported_modules(source: str, *, folder: Path) -> Iterator[str]:
    """What a module imports of the API, at its beginning or later, by dotted names below the API."""
    package = folder.relative_to(API.parent).parts
    for node in ast.walk(ast.parse(source)):
        modules: list[str] = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            base = ".".join([*above, *filter(None, [node.module])])
            modules = [f"{base}.{alias.name}" for alias in node.names]
        for module in modules:
            top, _, rest = module.partition(".")
            if top == API.name and rest:
                yield rest


def imported_domains(source: str, *, folder: Path) -> Iterator[str]:
    """What a module imports of the API as the name of the domain's folder."""
    for module in imported_modules(source, folder=folder):
        yield module.partition(".")[0]


def map_imports() -> dict[str, set[str]]:
    """By domain (and for core), the domains that it imports."""
    domains = list_domains()
    found: dict[str, set[str]] = defaultdict(set)
    for name in [*domains, CORE]:
        for path in (API / name).rglob("*.py"):
            found[name] |= set(imported_domains(path.read_text(), folder=path.parent)) & set(domains) - {name}
    return found


def map_imports_in_jobs() -> dict[str, set[str]]:
    """By package in `jobs`, the packages beside it that it imports."""
    packages = {path.parent.name for path in (API / "jobs").glob("*/__init__.py")}
    found: dict[str, set[str]] = defaultdict(set)
    for name in packages:
        for path in (API / "jobs" / name).rglob("*.py"):
            for module in imported_modules(path.read_text(), folder=path.parent):
                domain, _, rest = module.partition(".")
                if domain == "jobs":
                    found[name] |= {rest.partition(".")[0]} & packages - {name}
    return found


def find_mutual(imports: dict[str, set[str]]) -> set[tuple[str, str]]:
    """Pairs that import each other, each in the order of the alphabet."""
    return {
        (one, other)
        for one in imports
        for other in imports[one]
        if one < other and one in imports.get(other, set())
    }


def test_domains_that_import_each_other_are_listed_and_no_more_are() -> None:
    mutual = find_mutual(map_imports())

    assert mutual - ALLOWED.keys() == set(), "new pairs: pass what is needed, or ask core/uses.py"
    assert ALLOWED.keys() - mutual == set(), "pairs that are gone: take them from the list"


def test_packages_in_jobs_that_import_each_other_are_listed_and_no_more_are() -> None:
    mutual = find_mutual(map_imports_in_jobs())

    assert mutual - ALLOWED_IN_JOBS.keys() == set(), "new pairs: move what both need below them"
    assert ALLOWED_IN_JOBS.keys() - mutual == set(), "pairs that are gone: take them from the list"


def test_no_domain_imports_lineages() -> None:
    importing = [domain for domain, imported in map_imports().items() if "lineage" in imported]

    assert importing == []


def test_core_imports_no_domain() -> None:
    assert map_imports()[CORE] == set()


def test_every_way_to_import_a_domain_is_seen() -> None:
    source = """
import trellis_api.models.service
from trellis_api import datasets
from trellis_api.rewards.files import FILES
from ..votes import service
from .queue import admission

def late():
    from trellis_api.sweeps import states
"""

    found = set(imported_domains(source, folder=API / "jobs"))

    assert found == {"models", "datasets", "rewards", "votes", "jobs", "sweeps"}
