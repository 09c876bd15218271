"""ModelScope over its HTTP API: models in, each file by the SHA-256 listed, and models out in one commit.

The address is ``MODELSCOPE_ENDPOINT`` and the token ``MODELSCOPE_API_TOKEN``, as in ModelScope's own package;
neither is stored. It speaks of branches and tags: the listing names no commit to pin.
"""

import base64
import glob
import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import httpx
from trellis_data.addresses import open_endpoint_client
from trellis_data.hashing import hash_file
from trellis_data.operator import OperatorProblem

from trellis_workers.models.hub import FetchFailed, Kind, Snapshot, is_needed

ENDPOINT = "https://www.modelscope.cn"
DEFAULT_REVISION = "master"
TOKEN_VARIABLE = "MODELSCOPE_API_TOKEN"  # noqa: S105 - the name of a variable
_TIMEOUT = httpx.Timeout(60.0, connect=15.0)
_CHUNK_BYTES = 1 << 20
#: Files of these kinds travel within the commit, where they are small; the rest goes to the large-file store.
_INLINE = (".json", ".md", ".txt", ".jinja", ".py", ".yaml", ".yml")
_MAX_INLINE_BYTES = 1 << 20
#: Never taken without a SHA-256 to check them by.
_WEIGHTS = (".safetensors", ".bin", ".gguf")
#: Of a SHA-256, in the names of unfinished files.
_PART_DIGITS = 12
_PRIVATE, _PUBLIC = 1, 5
_REFUSED = (401, 403)
#: Called with the bytes that are sent, and the file that is on its way.
Tell = Callable[[int, str | None], None]


class ModelScopeError(Exception):
    """ModelScope does not do it; the message is one sentence for people."""


@dataclass(frozen=True)
class _File:
    name: str
    size_bytes: int
    sha256: str | None


class ModelScope:
    """ModelScope, with the interface of ``Hub`` for what is fetched."""

    def __init__(self) -> None:
        self._endpoint = (os.environ.get("MODELSCOPE_ENDPOINT") or ENDPOINT).rstrip("/")
        self._token = os.environ.get(TOKEN_VARIABLE) or None

    def resolve(self, repo_id: str, revision: str) -> Snapshot:
        """The revision and the size of the files that would be fetched."""
        with _explained(FetchFailed):
            return Snapshot(revision, sum(file.size_bytes for file in self._wanted(repo_id, revision)))

    def download(self, repo_id: str, commit: str, folder: Path) -> None:
        """Fetch the files of a revision; what an earlier try left in the folder is continued."""
        with _explained(FetchFailed):
            for file in self._wanted(repo_id, commit):
                self._download(repo_id, commit, file, folder)

    def resolve_files(
        self, repo_id: str, revision: str, files: Sequence[str], *, kind: Kind = "model"
    ) -> Snapshot:
        """The revision and the size of some files; ``FetchFailed`` where one is missing."""
        with _explained(FetchFailed):
            found = self._pick(repo_id, revision, files, kind)
        return Snapshot(revision, sum(file.size_bytes for file in found))

    def download_files(
        self, repo_id: str, commit: str, files: Sequence[str], folder: Path, *, kind: Kind = "model"
    ) -> None:
        """Fetch some files of a revision, each at its path under the folder."""
        with _explained(FetchFailed):
            for file in self._pick(repo_id, commit, files, kind):
                self._download(repo_id, commit, file, folder)

    def push(
        self, repo_id: str, files: dict[str, Path | bytes], *, private: bool, message: str, tell: Tell
    ) -> dict[str, Any]:
        """Send the files and make one commit of them; the repository is created where there is none."""
        if self._token is None:
            raise ModelScopeError(
                f"Pushing to ModelScope needs a token that may write: set {TOKEN_VARIABLE} for the workers."
            )
        with _explained(ModelScopeError):
            self._create(repo_id, private=private)
            done, actions = 0, list[dict[str, Any]]()
            for name, content in files.items():
                tell(done, name)
                actions.append(self._send(repo_id, name, content))
                done += actions[-1]["size"]
            body = {"commit_message": message, "actions": actions}
            path = f"repos/models/{repo_id}/commit/{DEFAULT_REVISION}"
            answer = self._ask("POST", path, json=body)
        commit = answer.get("CommitId") or answer.get("Id") or "" if isinstance(answer, dict) else ""
        return {
            "url": f"{self._endpoint}/models/{repo_id}",
            "commit": str(commit),
            "size_bytes": done,
        }

    def _wanted(self, repo_id: str, revision: str) -> list[_File]:
        found = [file for file in self._list(repo_id, revision) if is_needed(file.name)]
        if not found:
            raise FetchFailed(f"'{repo_id}' at '{revision}' on ModelScope has no files of a model.")
        return _check_hashes(found, repo_id)

    def _pick(self, repo_id: str, revision: str, names: Sequence[str], kind: Kind) -> list[_File]:
        if kind != "model":
            raise FetchFailed("Only models can be had from ModelScope.")
        there = {file.name: file for file in self._list(repo_id, revision)}
        if missing := [name for name in names if name not in there]:
            raise FetchFailed(f"'{repo_id}' at '{revision}' has no file {missing[0]}.")
        return _check_hashes([there[name] for name in names], repo_id)

    def _list(self, repo_id: str, revision: str) -> list[_File]:
        asked = {"Revision": revision, "Recursive": "True"}
        data = self._ask("GET", f"models/{repo_id}/repo/files", params=asked)
        return [
            _File(str(each["Path"]), int(each.get("Size") or 0), each.get("Sha256") or None)
            for each in map(_as_object, _as_object(data)["Files"] or [])
            if each.get("Type") != "tree"
        ]

    def _download(self, repo_id: str, revision: str, file: _File, folder: Path) -> None:
        target = folder / _check_name(file.name)
        if target.is_file() and file.sha256 is not None and hash_file(target) == file.sha256:
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        part = _name_part(target, file, revision)
        for other in target.parent.glob(f"{glob.escape(target.name)}.*.part"):
            if other != part:  # of another revision
                other.unlink()
        self._stream(repo_id, revision, file, part)
        if file.sha256 is not None and (found := hash_file(part)) != file.sha256:
            part.unlink()
            raise FetchFailed(
                f"{file.name} of '{repo_id}' has SHA-256 {found}, not the one that ModelScope names. Retry."
            )
        part.replace(target)

    def _stream(self, repo_id: str, revision: str, file: _File, part: Path) -> None:
        """Append to what is there; a server that knows no ranges starts the file anew.

        So does a file without a SHA-256: whether its beginning fits what follows would not show.
        """
        begins = part.stat().st_size if part.is_file() and file.sha256 is not None else 0
        if begins == file.size_bytes > 0:
            return
        ranges = {"Range": f"bytes={begins}-"} if 0 < begins < file.size_bytes else {}
        asked = {"Revision": revision, "FilePath": file.name}
        with (
            open_endpoint_client(self._endpoint, timeout=_TIMEOUT, follow_redirects=True) as client,
            client.stream(
                "GET",
                f"{self._endpoint}/api/v1/models/{repo_id}/repo",
                params=asked,
                # Ranges count the bytes that are sent: compressed, they would not be those of the file.
                headers={**self._headers, **ranges, "Accept-Encoding": "identity"},
            ) as answer,
        ):
            answer.raise_for_status()
            is_continued = answer.status_code == httpx.codes.PARTIAL_CONTENT
            with part.open("ab" if is_continued else "wb") as out:
                # As they come: what is gathered to larger pieces would be lost where the connection breaks.
                for chunk in answer.iter_bytes():
                    out.write(chunk)

    def _create(self, repo_id: str, *, private: bool) -> None:
        try:
            self._ask("GET", f"models/{repo_id}")
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.NOT_FOUND:
                raise
            owner, _, name = repo_id.partition("/")
            body = {"Path": owner, "Name": name, "Visibility": _PRIVATE if private else _PUBLIC}
            self._ask("POST", "models", json=body)

    def _send(self, repo_id: str, name: str, content: Path | bytes) -> dict[str, Any]:
        """The part of the commit that adds a file; a large one is stored first, unless it is there."""
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        action = {"action": "create", "path": name, "size": size}
        if size <= _MAX_INLINE_BYTES and name.endswith(_INLINE):
            data = content if isinstance(content, bytes) else content.read_bytes()
            encoded = base64.b64encode(data).decode()
            return {**action, "type": "normal", "sha256": "", "content": encoded, "encoding": "base64"}
        sha256 = hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else hash_file(content)
        body = {"operation": "upload", "objects": [{"oid": sha256, "size": size}]}
        answer = self._ask("POST", f"repos/models/{repo_id}/info/lfs/objects/batch", json=body)
        for each in map(_as_object, _as_object(answer).get("objects") or []):
            upload = _as_object(_as_object(each.get("actions") or {}).get("upload") or {})
            if each.get("oid") == sha256 and upload:
                self._store(str(upload["href"]), content, size)
        return {**action, "type": "lfs", "sha256": sha256, "content": "", "encoding": ""}

    def _store(self, address: str, content: Path | bytes, size: int) -> None:
        # The token goes to the endpoint alone: signed addresses of a store need none.
        headers = self._headers if _origin(address) == _origin(self._endpoint) else {}
        timeout = httpx.Timeout(3600.0, connect=15.0)
        sent = {**headers, "Content-Length": str(size)}
        with open_endpoint_client(self._endpoint, timeout=timeout, follow_redirects=False) as client:
            client.put(address, content=_read(content), headers=sent).raise_for_status()

    def _ask(self, method: str, path: str, **more: Any) -> Any:
        """The ``Data`` of an answer; errors come as a status, or as a code within a 200."""
        url = f"{self._endpoint}/api/v1/{path}"
        answer = httpx.request(method, url, headers=self._headers, timeout=_TIMEOUT, **more)
        answer.raise_for_status()
        body = _as_object(answer.json())
        code = body.get("Code", httpx.codes.OK)
        if code != httpx.codes.OK or body.get("Success") is False:
            refused = httpx.Response(int(code) if 400 <= int(code) < 600 else 400, request=answer.request)
            raise httpx.HTTPStatusError(str(body.get("Message")), request=answer.request, response=refused)
        return body.get("Data", body)

    @property
    def _headers(self) -> dict[str, str]:
        if self._token is None:
            return {}
        # Older parts of the API read the cookie, newer ones the header.
        return {"Authorization": f"Bearer {self._token}", "Cookie": f"m_session_id={self._token}"}


def _check_hashes(files: list[_File], repo_id: str) -> list[_File]:
    """The files; ``FetchFailed`` where weights could not be checked."""
    for file in files:
        if file.sha256 is None and file.name.lower().endswith(_WEIGHTS):
            raise FetchFailed(
                f"ModelScope lists {file.name} of '{repo_id}' without a SHA-256 to check it by."
            )
    return files


def _check_name(name: str) -> PurePosixPath:
    """A path below the folder; names of a listing are others' words."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise FetchFailed("ModelScope names a file outside of the repository.")
    return path


def _name_part(target: Path, file: _File, revision: str) -> Path:
    """Where an unfinished file lies: what another revision has under the same name is not continued."""
    mark = file.sha256[:_PART_DIGITS] if file.sha256 else hashlib.sha256(revision.encode()).hexdigest()
    return target.with_name(f"{target.name}.{mark[:_PART_DIGITS]}.part")


def _as_object(value: Any) -> dict[str, Any]:
    """A JSON object of an answer; ``ValueError`` where it is something else."""
    if not isinstance(value, dict):
        raise ValueError(f"no object, but {type(value).__name__}")
    return value


def _origin(address: str) -> tuple[str, str, int | None]:
    """Scheme, host and port (None: the usual one)."""
    url = httpx.URL(address)
    return url.scheme, url.host, url.port


def _read(content: Path | bytes) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
        return
    with content.open("rb") as file:
        while chunk := file.read(_CHUNK_BYTES):
            yield chunk


@contextmanager
def _explained(kind: type[Exception]) -> Iterator[None]:
    """Turn what httpx raises into one sentence without addresses or secrets."""
    try:
        yield
    except OperatorProblem as problem:
        raise kind(f"ModelScope leads to an address that isn't opened. {problem.message}") from problem
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        if status in _REFUSED:
            raise kind(
                f"ModelScope refuses (status {status}): check {TOKEN_VARIABLE} of the workers."
            ) from error
        if status == httpx.codes.NOT_FOUND:
            raise kind(
                f"ModelScope has no such model or revision, or {TOKEN_VARIABLE} may not read it."
            ) from error
        raise kind(f"ModelScope answered with status {status}.") from error
    except httpx.HTTPError as error:
        raise kind("ModelScope can't be reached, or the connection broke off; try again.") from error
    except (ValueError, KeyError, TypeError, httpx.InvalidURL) as error:  # no JSON, or of another form
        raise kind("ModelScope gave an unexpected answer.") from error
