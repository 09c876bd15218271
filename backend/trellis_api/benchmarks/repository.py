"""Queries on installed benchmarks."""

from collections.abc import Iterable, Sequence

from sqlmodel import Session, col, select

from trellis_api.benchmarks.models import BenchmarkInstall
from trellis_api.benchmarks.schemas import InstallState

#: States in which files are on their way.
_COMING = (InstallState.PENDING.value, InstallState.INSTALLING.value)


def find_install(session: Session, *, name: str) -> BenchmarkInstall | None:
    """Return the install record of a benchmark; None if nobody has requested its files."""
    return session.get(BenchmarkInstall, name)


def lock_install(session: Session, *, name: str) -> BenchmarkInstall | None:
    """Lock the row until the transaction ends and return its current state."""
    return session.get(BenchmarkInstall, name, with_for_update=True, populate_existing=True)


def map_installs(session: Session) -> dict[str, BenchmarkInstall]:
    """Map the name of each benchmark install to its row."""
    return {row.name: row for row in session.exec(select(BenchmarkInstall))}


def list_installing(session: Session) -> Sequence[str]:
    """List the names of the benchmarks whose files are being installed, in the order of the requests."""
    wanted = col(BenchmarkInstall.state).in_(_COMING)
    return session.exec(
        select(BenchmarkInstall.name).where(wanted).order_by(col(BenchmarkInstall.state_changed_at))
    ).all()


def save_install(session: Session, row: BenchmarkInstall) -> None:
    """Insert or update an install."""
    session.add(row)
    session.flush()


def names_on_their_way(session: Session, *, names: Iterable[str]) -> list[str]:
    """Return which of these benchmarks are being installed."""
    coming = set(list_installing(session))
    return [name for name in names if name in coming]
