"""Brings models of ModelScope to this machine, into a folder of the user's cache, each once."""

import fcntl
import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

from trellis_recipes.hub_names import CONFIG_FILE, NoHubModel, is_needed
from trellis_recipes.modelscope import (
    DEFAULT_REVISION,
    ModelScopeAway,
    ModelScopeError,
    ModelScopeFiles,
    RemoteFile,
    check_hashes,
    explained,
)

#: In a model's folder, once all of its files are there: their SHA-256.
_LIST_FILE = ".modelscope.json"
_WEIGHTS = ".safetensors"


def fetch_from_modelscope(
    name: str,
    *,
    revision: str | None = None,
    has_weights: bool = True,
    source: ModelScopeFiles | None = None,
) -> Path:
    """Return the folder of the model ``owner/name``, downloading only changed files. Raises ``NoHubModel``.

    Every revision has a folder of its own. Without ``has_weights`` the weights stay where they are. A model
    that is here is used also where ModelScope cannot be reached.
    """
    place = name if revision in (None, DEFAULT_REVISION) else f"{name}@{quote(str(revision), safe='')}"
    folder = _cache_folder() / place
    try:
        with explained():
            _bring(
                source or ModelScopeFiles(),
                name,
                revision or DEFAULT_REVISION,
                folder,
                has_weights=has_weights,
            )
    except ModelScopeError as error:
        if not (isinstance(error, ModelScopeAway) and (folder / _LIST_FILE).is_file()):
            raise NoHubModel(str(error)) from error
    except OSError as error:
        raise NoHubModel(f"{folder} cannot be written: {error.strerror}") from error
    return folder


def _bring(source: ModelScopeFiles, name: str, revision: str, folder: Path, *, has_weights: bool) -> None:
    listed = source.list_files(name, revision)
    wanted = check_hashes([each for each in listed if is_needed(each.name)], name)
    if all(each.name != CONFIG_FILE for each in wanted):
        raise NoHubModel(f"it has no {CONFIG_FILE}")
    folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        known = _read_list(folder)
        missing = [each for each in wanted if not _is_here(each, folder, known)]
        if missing:  # of another state of the model than the rest
            (folder / _LIST_FILE).unlink(missing_ok=True)
        for file in missing:
            if has_weights or not file.name.endswith(_WEIGHTS):
                source.download_file(name, revision, file, folder)
        if has_weights:
            _remove_others(folder, {each.name for each in wanted})
            _write_list(folder, {each.name: each.sha256 for each in wanted})


def _is_here(file: RemoteFile, folder: Path, known: dict[str, str | None]) -> bool:
    """Tell whether a complete download left this very file; hashing large weights would take minutes."""
    path = folder / file.name
    return (
        file.name in known
        and known[file.name] == file.sha256
        and path.is_file()
        and path.stat().st_size == file.size_bytes
    )


def _remove_others(folder: Path, wanted: set[str]) -> None:
    """Remove what an earlier state of the model had: loaders would prefer an old file of all weights."""
    for path in folder.rglob("*"):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and is_needed(name) and name not in wanted:
            path.unlink()


def _read_list(folder: Path) -> dict[str, str | None]:
    try:
        read = json.loads((folder / _LIST_FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):  # none yet, or not whole: all files are checked by their hashes
        return {}
    return read if isinstance(read, dict) else {}


def _write_list(folder: Path, files: dict[str, str | None]) -> None:
    draft = folder / f"{_LIST_FILE}.{os.getpid()}"
    draft.write_text(json.dumps(files), encoding="utf-8")
    draft.replace(folder / _LIST_FILE)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock a model's folder, so that one process at a time writes into it."""
    with (folder.parent / f".{folder.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _cache_folder() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "trellis" / "modelscope"
