"""Brings the files of benchmarks: ``POST /benchmarks/{name}/install``, or an evaluation, writes PENDING.

The files come from the hub at the catalogue's revision, or from the folder that stands for it
(``TRELLIS_BENCHMARK_MIRROR``). They are counted, hashed and moved into place at once: a benchmark is there
whole or not at all. A lost message costs nothing: beat calls ``install_benchmarks``, and since one worker
at a time holds the lock, a row that says INSTALLING was left by one that died.
"""

import hashlib
import logging
import shutil
from pathlib import Path

from sqlalchemy.exc import OperationalError
from trellis_api.benchmarks import repository, service
from trellis_api.benchmarks.installed import SOURCE_FILE, InstalledSource, locate_benchmark, locate_benchmarks
from trellis_api.core.columns import utc_now
from trellis_api.core.errors import means_no_room
from trellis_api.core.settings import Settings
from trellis_contracts.hashing import hash_file
from trellis_evaluation.catalogue import CatalogueBenchmark, UnknownBenchmark, get_benchmark

from trellis_workers.core.lock import try_lock
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write
from trellis_workers.evaluations.benchmark_rows import UnfitFile, count_rows, ending_of
from trellis_workers.models.hub import FetchFailed, Hub

logger = logging.getLogger(__name__)
_LOCK_FILE = "run/install-benchmarks.lock"
_BLOCK_BYTES = 1024**2


def install_benchmarks() -> bool:
    """Bring every benchmark that is waited for, one after the other; whether any was settled."""
    with read() as session:
        names = repository.list_installing(session)
    if not names:
        return False
    with try_lock(get_settings().data_root / _LOCK_FILE) as has_lock:
        if not has_lock:
            return False
        settled = [_install(name) for name in names]
    return any(settled)


def _install(name: str) -> bool:
    settings = get_settings()
    with write() as session:
        if not service.mark_installing(session, name=name):
            return False
    try:
        source = _bring(settings, get_benchmark(name))
    except (FetchFailed, UnfitFile, UnknownBenchmark) as error:
        return _fail(name, str(error))
    except OSError as error:
        reason = (
            "The disk is full." if means_no_room(error) else f"Could not write the files: {error.strerror}."
        )
        return _fail(name, reason)
    except OperationalError:
        raise  # it is taken up again when the database is back
    except Exception as error:  # without a reason, the benchmark would be brought again for ever
        logger.exception("benchmark %s: its installation failed unexpectedly", name)
        said = f"{type(error).__name__}: {error}".removesuffix(": ")
        return _fail(name, f"Unexpected worker error: {said}")
    with write() as session:
        service.mark_ready(session, source=source)
    logger.info("benchmark %s is installed: %s", name, source.rows)
    return True


def _fail(name: str, reason: str) -> bool:
    logger.warning("benchmark %s could not be installed: %s", name, reason)
    with write() as session:
        service.mark_failed(session, name=name, reason=reason)
    return True


def _bring(settings: Settings, entry: CatalogueBenchmark) -> InstalledSource:
    """Fetch files, check them and move them into place."""
    root = locate_benchmarks(settings)
    staging, doomed = root / f".staging-{entry.name}", root / f".removed-{entry.name}"
    for left in (staging, doomed):  # by a worker that died
        shutil.rmtree(left, ignore_errors=True)
    staging.mkdir(parents=True)
    try:
        is_mirror = settings.benchmark_mirror is not None
        if settings.benchmark_mirror is not None:
            revision, files = None, _copy_mirror(settings.benchmark_mirror, entry, staging)
        else:
            revision, files = _download(settings, entry, staging)
        source = _describe(entry, staging, files, revision=revision, is_mirror=is_mirror)
        (staging / SOURCE_FILE).write_text(source.model_dump_json(indent=2), "utf-8")
        folder = locate_benchmark(settings, entry.name)
        if folder.exists():
            folder.rename(doomed)
        staging.rename(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
        shutil.rmtree(doomed, ignore_errors=True)
    return source


def _copy_mirror(mirror: Path, entry: CatalogueBenchmark, staging: Path) -> dict[str, list[str]]:
    """Copy the mirror's files and map each part to their names; all but the measured one may be missing."""
    files: dict[str, list[str]] = {}
    for part, described in entry.parts.items():
        sources = [mirror / path for path in described.mirror]
        missing = [path for path in sources if not path.is_file()]
        if (missing or not sources) and part == entry.measured:
            shown = missing[0].relative_to(mirror) if missing else "files of it"
            raise FetchFailed(f"The benchmark folder ({mirror}) is missing {shown}.")
        if missing or not sources:
            logger.warning("benchmark %s: the mirror has no split '%s'", entry.name, part)
            continue
        files[part] = _name_files(part, [path.name for path in sources])
        for source, name in zip(sources, files[part], strict=True):
            shutil.copyfile(source, staging / name)
    return files


def _download(
    settings: Settings, entry: CatalogueBenchmark, staging: Path
) -> tuple[str, dict[str, list[str]]]:
    """Download the files, and return the commit and the file names by part."""
    hub, wanted = Hub(), [file for part in entry.parts.values() for file in part.files]
    snapshot = hub.resolve_files(entry.repo_id, entry.revision, wanted)
    free = shutil.disk_usage(staging).free
    if free - snapshot.size_bytes < settings.min_free_disk_bytes:
        raise FetchFailed(f"The files need {snapshot.size_bytes:,} bytes, but only {free:,} bytes are free.")
    fetched = staging / ".fetched"
    hub.download_files(entry.repo_id, snapshot.commit, wanted, fetched)
    files: dict[str, list[str]] = {}
    for part, described in entry.parts.items():
        files[part] = _name_files(part, described.files)
        for path, name in zip(described.files, files[part], strict=True):
            _compare_hash(fetched / path, path, described.sha256.get(path))
            (fetched / path).rename(staging / name)
    shutil.rmtree(fetched)
    return snapshot.commit, files


def _compare_hash(path: Path, name: str, expected: str | None) -> None:
    """Raise ``UnfitFile`` if the file's hash isn't the one in the catalogue."""
    if expected is None:
        return
    if (found := hash_file(path)) != expected:
        raise UnfitFile(f"{name} does not match the catalog: its SHA-256 is {found}.")


def _name_files(part: str, names: list[str]) -> list[str]:
    """Name files ``test.parquet``, or ``test-00.parquet``, ``test-01.parquet`` ... if there are several."""
    if len(names) == 1:
        return [f"{part}{ending_of(names[0])}"]
    return [f"{part}-{index:02d}{ending_of(name)}" for index, name in enumerate(names)]


def _describe(
    entry: CatalogueBenchmark,
    staging: Path,
    files: dict[str, list[str]],
    *,
    revision: str | None,
    is_mirror: bool,
) -> InstalledSource:
    """Count and hash; ``UnfitFile`` where the files are not those that the catalogue describes."""
    rows, groups, digest, size = {}, dict[str, dict[str, int]](), hashlib.sha256(), 0
    for part, names in files.items():
        paths, described = [staging / name for name in names], entry.parts[part]
        columns = entry.group_columns if part == entry.measured else {}
        rows[part], found = count_rows(paths, columns)
        groups.update(found)
        expected = described.mirror_rows or described.rows if is_mirror else described.rows
        if rows[part] != expected:
            raise UnfitFile(
                f"The split '{part}' has {rows[part]} rows, but the catalog expects {expected}: the files "
                "are incomplete or from another revision."
            )
        for path in paths:
            size += path.stat().st_size
            with path.open("rb") as file:
                while block := file.read(_BLOCK_BYTES):
                    digest.update(block)
    return InstalledSource(
        name=entry.name,
        origin="mirror" if is_mirror else "hub",
        repo_id=entry.repo_id,
        revision=revision,
        sha256=digest.hexdigest(),
        files=files,
        rows=rows,
        groups=groups,
        size_bytes=size,
        installed_at=utc_now().isoformat(),
    )
