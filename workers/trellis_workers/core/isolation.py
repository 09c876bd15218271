"""What processes that workers start may see: their folder, and of the data root what their inputs name."""

from collections.abc import Iterable
from pathlib import Path

from sqlalchemy import make_url
from trellis_api.core.settings import REPOSITORY_ROOT, Settings
from trellis_contracts.isolation import Rules


def make_rules(
    settings: Settings,
    inputs: Iterable[Path | str],
    *,
    writable: Iterable[Path | str],
    locked: Iterable[Path | str] = (),
    temporary: Path | None = None,
    kept_variables: Iterable[str] = (),
) -> Rules:
    """Build the rules of a process that reads ``inputs`` and writes to ``writable``, except ``locked``."""
    may_write = [str(path) for path in writable]
    named = {str(path) for path in inputs}
    return Rules(
        mode=settings.resolved_job_isolation,
        data_root=str(settings.data_root),
        writable=may_write,
        read_only=sorted(named.difference(may_write)),
        locked=[str(path) for path in locked],
        hidden=_list_hidden(settings),
        temporary=None if temporary is None else str(temporary),
        kept_variables=list(kept_variables),
    )


def _list_hidden(settings: Settings) -> list[str]:
    """List the platform's own files that lie outside the data root."""
    hidden = [str(REPOSITORY_ROOT / ".env")]
    url = make_url(settings.effective_database_url)
    if url.drivername.startswith("sqlite") and url.database:
        hidden += [f"{url.database}{end}" for end in ("", "-wal", "-shm", "-journal")]
    return hidden
