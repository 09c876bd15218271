"""ModelScope over its HTTP API: models in, each file by the SHA-256 listed, and models out in one commit.

The address is ``MODELSCOPE_ENDPOINT`` and the token ``MODELSCOPE_API_TOKEN``, as in ModelScope's own package;
neither is stored. It speaks of branches and tags: the listing names no commit to pin.
"""

import base64
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from trellis_contracts.hashing import hash_file
from trellis_data.guarded_clients import GuardedModelScope
from trellis_data.operator import OperatorProblem
from trellis_recipes.hub_names import is_needed
from trellis_recipes.modelscope import (
    DEFAULT_REVISION,
    TOKEN_VARIABLE,
    ModelScopeError,
    RemoteFile,
    as_object,
    check_hashes,
    explained,
)

from trellis_workers.models.hub import FetchFailed, Kind, Snapshot

_CHUNK_BYTES = 1 << 20
#: Files of these kinds travel within the commit, where they are small; the rest goes to the large-file store.
_INLINE = (".json", ".md", ".txt", ".jinja", ".py", ".yaml", ".yml")
_MAX_INLINE_BYTES = 1 << 20
_PRIVATE, _PUBLIC = 1, 5
#: Called with the bytes that are sent, and the file that is on its way.
Tell = Callable[[int, str | None], None]


class ModelScope(GuardedModelScope):
    """ModelScope, with the interface of ``Hub`` for what is fetched."""

    def resolve(self, repo_id: str, revision: str) -> Snapshot:
        """Return the revision and the size of the files to download."""
        with _fetching():
            return Snapshot(revision, sum(file.size_bytes for file in self._wanted(repo_id, revision)))

    def download(self, repo_id: str, commit: str, folder: Path) -> None:
        """Fetch the files of a revision; what an earlier try left in the folder is continued."""
        with _fetching():
            for file in self._wanted(repo_id, commit):
                self.download_file(repo_id, commit, file, folder)

    def resolve_files(
        self, repo_id: str, revision: str, files: Sequence[str], *, kind: Kind = "model"
    ) -> Snapshot:
        """Return the revision and the size of some files; ``FetchFailed`` if one is missing."""
        with _fetching():
            found = self._pick(repo_id, revision, files, kind)
        return Snapshot(revision, sum(file.size_bytes for file in found))

    def download_files(
        self, repo_id: str, commit: str, files: Sequence[str], folder: Path, *, kind: Kind = "model"
    ) -> None:
        """Fetch some files of a revision, each at its path under the folder."""
        with _fetching():
            for file in self._pick(repo_id, commit, files, kind):
                self.download_file(repo_id, commit, file, folder)

    def push(
        self, repo_id: str, files: dict[str, Path | bytes], *, private: bool, message: str, tell: Tell
    ) -> dict[str, Any]:
        """Send the files and make one commit of them; the repository is created where there is none."""
        if self.token is None:
            raise ModelScopeError(
                f"Pushing to ModelScope needs a token that may write: set {TOKEN_VARIABLE} for the workers."
            )
        with _explained():
            self._create(repo_id, private=private)
            done, actions = 0, list[dict[str, Any]]()
            for name, content in files.items():
                tell(done, name)
                actions.append(self._send(repo_id, name, content))
                done += actions[-1]["size"]
            body = {"commit_message": message, "actions": actions}
            path = f"repos/models/{repo_id}/commit/{DEFAULT_REVISION}"
            answer = self.ask("POST", path, json=body)
        commit = answer.get("CommitId") or answer.get("Id") or "" if isinstance(answer, dict) else ""
        return {
            "url": f"{self.endpoint}/models/{repo_id}",
            "commit": str(commit),
            "size_bytes": done,
        }

    def _wanted(self, repo_id: str, revision: str) -> list[RemoteFile]:
        found = [file for file in self.list_files(repo_id, revision) if is_needed(file.name)]
        if not found:
            raise FetchFailed(f"'{repo_id}' at '{revision}' on ModelScope has no files of a model.")
        return check_hashes(found, repo_id)

    def _pick(self, repo_id: str, revision: str, names: Sequence[str], kind: Kind) -> list[RemoteFile]:
        if kind != "model":
            raise FetchFailed("Only models can be had from ModelScope.")
        there = {file.name: file for file in self.list_files(repo_id, revision)}
        if missing := [name for name in names if name not in there]:
            raise FetchFailed(f"'{repo_id}' at '{revision}' has no file {missing[0]}.")
        return check_hashes([there[name] for name in names], repo_id)

    def _create(self, repo_id: str, *, private: bool) -> None:
        try:
            self.ask("GET", f"models/{repo_id}")
        except httpx.HTTPStatusError as error:
            if error.response.status_code != httpx.codes.NOT_FOUND:
                raise
            owner, _, name = repo_id.partition("/")
            body = {"Path": owner, "Name": name, "Visibility": _PRIVATE if private else _PUBLIC}
            self.ask("POST", "models", json=body)

    def _send(self, repo_id: str, name: str, content: Path | bytes) -> dict[str, Any]:
        """Return the part of the commit that adds a file.

        A large file is uploaded first, unless it is there.
        """
        size = len(content) if isinstance(content, bytes) else content.stat().st_size
        action = {"action": "create", "path": name, "size": size}
        if size <= _MAX_INLINE_BYTES and name.endswith(_INLINE):
            data = content if isinstance(content, bytes) else content.read_bytes()
            encoded = base64.b64encode(data).decode()
            return {**action, "type": "normal", "sha256": "", "content": encoded, "encoding": "base64"}
        sha256 = hashlib.sha256(content).hexdigest() if isinstance(content, bytes) else hash_file(content)
        body = {"operation": "upload", "objects": [{"oid": sha256, "size": size}]}
        answer = self.ask("POST", f"repos/models/{repo_id}/info/lfs/objects/batch", json=body)
        for each in map(as_object, as_object(answer).get("objects") or []):
            upload = as_object(as_object(each.get("actions") or {}).get("upload") or {})
            if each.get("oid") == sha256 and upload:
                self._store(str(upload["href"]), content, size)
        return {**action, "type": "lfs", "sha256": sha256, "content": "", "encoding": ""}

    def _store(self, address: str, content: Path | bytes, size: int) -> None:
        # The token goes to the endpoint alone: signed addresses of a store need none.
        headers = self.headers if _origin(address) == _origin(self.endpoint) else {}
        timeout = httpx.Timeout(3600.0, connect=15.0)
        sent = {**headers, "Content-Length": str(size)}
        with self.open_client(timeout=timeout, follow_redirects=False) as client:
            client.put(address, content=_read(content), headers=sent).raise_for_status()


def _origin(address: str) -> tuple[str, str, int | None]:
    """Split an address into scheme, host and port (None: the default one)."""
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
def _fetching() -> Iterator[None]:
    try:
        with _explained():
            yield
    except ModelScopeError as error:
        raise FetchFailed(str(error)) from error


@contextmanager
def _explained() -> Iterator[None]:
    """Raise ``ModelScopeError`` also if an address that ModelScope names isn't opened."""
    with explained():
        try:
            yield
        except OperatorProblem as problem:
            raise ModelScopeError(
                f"ModelScope leads to an address that isn't opened. {problem.message}"
            ) from problem
