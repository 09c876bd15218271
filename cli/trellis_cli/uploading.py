"""Sends a file to the platform in pieces (the tus protocol), and goes on after any break.

Which upload belongs to a file is noted in the user's cache folder until the file has been imported: the
same command, called again, sends only what is missing.
"""

import base64
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path

from trellis_cli.client import ApiClient
from trellis_cli.errors import ExitCode, Problem, Refusal

PIECE_BYTES = 8 * 1024 * 1024
#: Tries in a row that bring nothing further before the upload is left for later.
_TRIES = 6
_LONGEST_PAUSE_S = 8.0
_PROTOCOL = {"Tus-Resumable": "1.0.0"}
#: The piece did not arrive as it was sent, or somebody still writes: the same again helps.
_PASSING = frozenset({408, 409, 423, 460, 502, 503, 504})

Tell = Callable[[int], None]


class Note:
    """Remembers the upload of a file; one that has changed since is another file."""

    def __init__(self, client: ApiClient, file: Path) -> None:
        found = file.stat()
        identity = f"{client.url}\n{file.resolve()}\n{found.st_size}\n{found.st_mtime_ns}"
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        self._path = cache / "trellis" / "uploads" / hashlib.sha256(identity.encode()).hexdigest()[:32]

    def read(self) -> str | None:
        """Read the id of the upload, if one was started."""
        try:
            return self._path.read_text().strip() or None
        except OSError:
            return None

    def write(self, upload: str) -> None:
        """Keep the id. Without a place for it the upload works, but cannot be taken up by itself."""
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            self._path.write_text(upload)
        except OSError:
            return

    def forget(self) -> None:
        """Delete the note of an upload that is no longer needed."""
        self._path.unlink(missing_ok=True)


def send_file(client: ApiClient, file: Path, *, resume: str | None = None, tell: Tell) -> str:
    """Upload a file, or what is missing of it; ``tell`` is called with the bytes that are there. The id."""
    size = file.stat().st_size
    note = Note(client, file)
    upload, offset = _take_up(client, size, resume, note.read()) or (_begin(client, file, size), 0)
    note.write(upload)
    tell(offset)
    try:
        _send_rest(client, file, upload, offset, tell)
    except Problem as problem:
        if problem.hint is None or problem.exit_code == ExitCode.UNREACHABLE:
            problem.hint = f"run the same command again to resume (or --resume {upload})"
        raise
    return upload


def _begin(client: ApiClient, file: Path, size: int) -> str:
    name = base64.b64encode(file.name.encode(errors="replace")).decode()
    headers = {**_PROTOCOL, "Upload-Length": str(size), "Upload-Metadata": f"filename {name}"}
    return client.send("POST", "/uploads", headers=headers).headers["Location"].rpartition("/")[2]


def _take_up(client: ApiClient, size: int, asked: str | None, noted: str | None) -> tuple[str, int] | None:
    upload = asked or noted
    if upload is None:
        return None
    try:
        offset, length = _locate(client, upload)
    except Refusal as refusal:
        if refusal.status != 404:
            raise
        if asked:
            raise Problem(f"no upload {asked}; it may have expired", exit_code=ExitCode.REFUSED) from refusal
        return None
    if length == size:
        return upload, offset
    if asked:
        raise Problem(
            f"upload {asked} belongs to a file of {length} bytes, not {size}",
            exit_code=ExitCode.USAGE,
        )
    return None


def _locate(client: ApiClient, upload: str) -> tuple[int, int]:
    headers = client.send("HEAD", f"/uploads/{upload}", headers=_PROTOCOL).headers
    return int(headers["Upload-Offset"]), int(headers["Upload-Length"])


def _send_rest(client: ApiClient, file: Path, upload: str, offset: int, tell: Tell) -> None:
    size, failed = file.stat().st_size, 0
    with file.open("rb") as handle:
        while offset < size:
            handle.seek(offset)
            piece = handle.read(PIECE_BYTES)
            if not piece:
                raise Problem(f"{file} became shorter while it was sent", hint="upload it again")
            try:
                now = _send_piece(client, upload, offset, piece)
            except Problem as problem:
                failed += 1
                if not _passes(problem) or failed >= _TRIES:
                    raise
                time.sleep(min(0.25 * 2**failed, _LONGEST_PAUSE_S))
                now = _locate_or(client, upload, offset)
            if now > offset:
                failed = 0
            offset = now
            tell(offset)


def _send_piece(client: ApiClient, upload: str, offset: int, piece: bytes) -> int:
    digest = base64.b64encode(hashlib.sha256(piece).digest()).decode()
    headers = {
        **_PROTOCOL,
        "Upload-Offset": str(offset),
        "Upload-Checksum": f"sha256 {digest}",
        "Content-Type": "application/offset+octet-stream",
    }
    answer = client.send("PATCH", f"/uploads/{upload}", headers=headers, content=piece)
    return int(answer.headers["Upload-Offset"])


def _passes(problem: Problem) -> bool:
    if isinstance(problem, Refusal):
        return problem.status in _PASSING
    return problem.exit_code == ExitCode.UNREACHABLE


def _locate_or(client: ApiClient, upload: str, offset: int) -> int:
    """Return the upload's offset; while the API does not answer, the last known one."""
    try:
        return _locate(client, upload)[0]
    except Problem as problem:
        if not _passes(problem):
            raise
        return offset
