"""Decides about benchmarks: what can be used here, and when files are brought."""

import logging
from importlib.util import find_spec

from sqlmodel import Session
from trellis_contracts.recipe import Text
from trellis_evaluation.catalogue import (
    CatalogueBenchmark,
    UnknownBenchmark,
    get_benchmark,
    list_benchmarks,
)

from trellis_api.benchmarks import repository
from trellis_api.benchmarks.errors import BenchmarkInUse, BenchmarkNotFound, BenchmarkNotInstallable
from trellis_api.benchmarks.installed import InstalledSource
from trellis_api.benchmarks.models import BenchmarkInstall
from trellis_api.benchmarks.schemas import BenchmarkRead, BenchmarkSource, InstallState
from trellis_api.core.columns import utc_now
from trellis_api.core.settings import Settings
from trellis_api.core.uses import BENCHMARKS
from trellis_api.rewards.availability import read_sandbox_problem

log = logging.getLogger(__name__)
_HARNESS_MODULE = "lm_eval"


def find_entry(name: str) -> CatalogueBenchmark:
    """Return the catalogue's entry; ``BenchmarkNotFound`` without one."""
    try:
        return get_benchmark(name)
    except UnknownBenchmark as error:
        raise BenchmarkNotFound(name) from error


def read_all(session: Session) -> list[BenchmarkRead]:
    """Return all benchmarks of the catalogue, each with its install state."""
    installs, obstacle = repository.map_installs(session), find_sandbox_obstacle(session)
    return [_present(entry, installs.get(entry.name), obstacle) for entry in list_benchmarks()]


def read_one(session: Session, *, name: str) -> BenchmarkRead:
    """Read one benchmark; 404 if the catalogue has none of that name."""
    entry = find_entry(name)
    return _present(entry, repository.find_install(session, name=name), find_sandbox_obstacle(session))


def request_install(session: Session, *, name: str) -> BenchmarkRead:
    """Let a worker bring the files; refused where they are here already, or on their way."""
    entry = find_entry(name)
    row = repository.lock_install(session, name=name)
    if not _can_install(entry, row):
        state = row.state if row else InstallState.ABSENT
        raise BenchmarkNotInstallable(f"The files of '{name}' are already {state}.", {"state": state})
    if row is not None and row.state == InstallState.READY:
        users = [use.label for use in BENCHMARKS.find(session, name)]
        if users:
            raise BenchmarkInUse(f"'{name}' is in use by {', '.join(users)[:500]}.", {"evaluations": users})
    _queue(session, name=name, row=row)
    return read_one(session, name=name)


def install_if_absent(session: Session, *, name: str) -> bool:
    """Queue the files of a benchmark that is not here; whether they are to be waited for."""
    row = repository.lock_install(session, name=name)
    if row is not None and row.state == InstallState.READY:
        return False
    if row is None or row.state == InstallState.FAILED:
        _queue(session, name=name, row=row)
    return True


def find_sandbox_obstacle(session: Session) -> Text | None:
    """Return why code written by a model can't be run on the workers' machines, or None."""
    problem = read_sandbox_problem(session)
    if problem is None:
        return None
    return Text(
        en="Code only runs in a sandbox, which isn't available on the workers' machine: "
        f"{problem}. Fix this and restart the workers.",
        zh=f"代码只能在沙箱中运行，而工作进程所在的机器没有可用的沙箱：{problem}。修复后请重启工作进程。",
    )


def find_harness_obstacle(settings: Settings) -> str | None:
    """Return why tasks of lm-evaluation-harness can't be run, or None. Another Python's jobs find out."""
    if settings.job_python is not None or find_spec(_HARNESS_MODULE) is not None:
        return None
    return "The lm-eval package is not installed where jobs run. Install it or remove these tasks."


def mark_installing(session: Session, *, name: str) -> bool:
    """Set PENDING (or INSTALLING, if the worker died) to INSTALLING; False if there is nothing to install."""
    row = repository.lock_install(session, name=name)
    if row is None or row.state not in (InstallState.PENDING, InstallState.INSTALLING):
        return False
    _set_state(session, row, InstallState.INSTALLING)
    return True


def mark_ready(session: Session, *, source: InstalledSource) -> None:
    """Mark a benchmark's files as installed and record their revision, hash and size."""
    row = repository.lock_install(session, name=source.name)
    if row is None:
        row = BenchmarkInstall(name=source.name, state=InstallState.INSTALLING.value)
    row.revision, row.sha256, row.size_bytes = source.revision, source.sha256, source.size_bytes
    row.rows, row.groups = source.rows, source.groups
    row.installed_at = utc_now()
    _set_state(session, row, InstallState.READY)


def mark_failed(session: Session, *, name: str, reason: str) -> None:
    """Mark an install as failed, with the reason to show."""
    row = repository.lock_install(session, name=name)
    if row is not None:
        _set_state(session, row, InstallState.FAILED, reason=reason)


def _queue(session: Session, *, name: str, row: BenchmarkInstall | None) -> None:
    if row is None:
        row = BenchmarkInstall(name=name, state=InstallState.PENDING.value)
    _set_state(session, row, InstallState.PENDING)
    log.info("benchmark %s: its files are asked for", name)


def _set_state(
    session: Session, row: BenchmarkInstall, state: InstallState, *, reason: str | None = None
) -> None:
    row.state = state.value
    row.state_reason = reason[:2000] if reason else None
    row.state_changed_at = utc_now()
    repository.save_install(session, row)


def _can_install(entry: CatalogueBenchmark, row: BenchmarkInstall | None) -> bool:
    """Tell whether it isn't installed, failed to install, or the catalogue has another revision by now."""
    if row is None or row.state == InstallState.FAILED:
        return True
    is_outdated = row.revision is not None and row.revision != entry.revision
    return row.state == InstallState.READY and is_outdated


def _present(
    entry: CatalogueBenchmark, row: BenchmarkInstall | None, sandbox_obstacle: Text | None
) -> BenchmarkRead:
    is_ready = row is not None and row.state == InstallState.READY
    here = row.groups if row is not None and is_ready else {}
    return BenchmarkRead(
        name=entry.name,
        title=entry.title,
        description=entry.description,
        metrics=entry.metrics,
        group_kinds=entry.group_kinds,
        groups={kind: sorted(names) for kind, names in here.items()} or entry.groups,
        needs=entry.needs,
        default_shots=entry.default_shots,
        default_max_tokens=entry.default_max_tokens,
        runs_code=entry.runs_code,
        unavailable=sandbox_obstacle if entry.runs_code else None,
        paper=entry.paper,
        source=BenchmarkSource(repo_id=entry.repo_id, revision=entry.revision, license=entry.license),
        state=InstallState(row.state) if row else InstallState.ABSENT,
        state_reason=row.state_reason if row else None,
        revision=row.revision if row else None,
        sha256=row.sha256 if row else None,
        size_bytes=row.size_bytes if row else None,
        rows=row.rows if row is not None and is_ready else {n: p.rows for n, p in entry.parts.items()},
        installed_at=row.installed_at if row else None,
        can_install=_can_install(entry, row),
    )
