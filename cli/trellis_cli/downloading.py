"""Brings the files of a model or checkpoint into a folder, and goes on after any break.

Each file has a name of its own until it is whole. What state of the platform's file it is of is noted beside
it, so that the same command, called again, fetches only what is missing and what has changed.
"""

import json
import os
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote

import httpx

from trellis_cli.client import ApiClient
from trellis_cli.errors import ExitCode, Problem

NOTES = ".trellis-download.json"
_UNFINISHED = ".unfinished"
#: Told the name of a file and how many bytes of it are there.
Tell = Callable[[str, int], None]


def fetch_all(client: ApiClient, address: str, folder: Path, *, tell: Tell) -> list[Path]:
    """Download all files of ``/models/...`` or ``/jobs/.../checkpoints/...``; return their paths."""
    files = client.get(f"{address}/files")["items"]
    places = {file["name"]: _place(folder, str(file["name"])) for file in files}
    notes = _Notes(folder, address)
    return [_fetch(client, f"{address}/files", file, places[file["name"]], notes, tell) for file in files]


class _Notes:
    """Which state of each file has arrived, by the tag that the platform gives it."""

    def __init__(self, folder: Path, address: str) -> None:
        self._path, self._address = folder / NOTES, address
        self._tags: dict[str, str] = {}
        try:
            kept = json.loads(self._path.read_text())
            self._tags = dict(kept["tags"]) if kept["of"] == address else {}
        except (OSError, ValueError, KeyError, TypeError):
            self._tags = {}  # a first download, or one of something else: all is fetched

    def read(self, name: str) -> str | None:
        """Return the stored ETag of a file, or None."""
        return self._tags.get(name)

    def write(self, name: str, tag: str) -> None:
        """Keep it."""
        self._tags[name] = tag
        self._path.parent.mkdir(parents=True, exist_ok=True)
        draft = self._path.with_suffix(".draft")
        draft.write_text(json.dumps({"of": self._address, "tags": self._tags}))
        os.replace(draft, self._path)


def _place(folder: Path, name: str) -> Path:
    """Return where a file goes; raise ``Problem`` if its name would lead outside the folder."""
    parts = PurePosixPath(name).parts
    if not parts or PurePosixPath(name).is_absolute() or ".." in parts or "\\" in name or "\0" in name:
        raise Problem(f"the platform returned a file name outside {folder}: '{name[:100]}'")
    return folder.joinpath(*parts)


def _fetch(
    client: ApiClient, address: str, file: dict[str, Any], target: Path, notes: _Notes, tell: Tell
) -> Path:
    name, size, tag = str(file["name"]), int(file["size_bytes"]), notes.read(str(file["name"]))
    unfinished = target.with_name(f"{target.name}{_UNFINISHED}")
    there = unfinished.stat().st_size if tag and unfinished.exists() else 0
    is_whole = bool(tag) and target.exists() and target.stat().st_size == size
    headers = {"If-None-Match": tag} if is_whole and tag else {}
    if there and tag and not is_whole:
        headers = {"Range": f"bytes={there}-", "If-Range": tag}
    if there == size and size and tag and not is_whole:
        headers = {"Range": f"bytes={size - 1}-", "If-Range": tag}
        there = size - 1
    target.parent.mkdir(parents=True, exist_ok=True)
    with client.open(f"{address}/{quote(name)}", headers=headers) as answer:
        new_tag = answer.headers.get("etag", "")
        if is_whole and new_tag == tag:
            tell(name, size)
            return target
        notes.write(name, new_tag)
        write_answer(answer, unfinished, there, tell=lambda count: tell(name, count))
    arrived = unfinished.stat().st_size
    if arrived != size:
        raise Problem(
            f"{name} has {arrived} of {size} bytes",
            hint="run the same command again to resume",
            exit_code=ExitCode.UNREACHABLE,
        )
    os.replace(unfinished, target)
    return target


def write_answer(
    answer: httpx.Response, path: Path, there: int, *, tell: Callable[[int], None] = lambda _count: None
) -> None:
    """Write a body to ``path``: after its first ``there`` bytes if it is a file's rest (206), else whole.

    ``tell`` is told how many bytes are there after each piece.
    """
    is_rest = answer.status_code == 206
    with path.open("r+b" if is_rest else "wb") as handle:
        handle.seek(there if is_rest else 0)
        handle.truncate()
        for piece in answer.iter_bytes():
            handle.write(piece)
            tell(handle.tell())
