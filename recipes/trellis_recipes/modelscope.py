"""Reads models and datasets of ModelScope over its HTTP API: lists files, and downloads each by its SHA-256.

The address is ``MODELSCOPE_ENDPOINT`` and the token ``MODELSCOPE_API_TOKEN``, as in ModelScope's own package;
neither is stored. It speaks of branches and tags: the listing names no commit to pin.
"""

import glob
import hashlib
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Literal

import httpx
from trellis_contracts.hashing import hash_file

ENDPOINT = "https://www.modelscope.cn"
DEFAULT_REVISION = "master"
TOKEN_VARIABLE = "MODELSCOPE_API_TOKEN"  # noqa: S105 - the name of a variable
TIMEOUT = httpx.Timeout(60.0, connect=15.0)
#: What kind of repository, as addresses name it.
Kind = Literal["models", "datasets"]
#: Files of a dataset in one answer, and answers at most.
_PAGE_FILES, _MAX_PAGES = 200, 500
#: Never taken without a SHA-256 to check them by.
_WEIGHTS = (".safetensors", ".bin", ".gguf")
#: Of a SHA-256, in the names of unfinished files.
_PART_DIGITS = 12
_REFUSED = (401, 403)


class ModelScopeError(Exception):
    """ModelScope does not do it; the message is one sentence for people."""


class ModelScopeAway(ModelScopeError):
    """It cannot be reached."""


@dataclass(frozen=True)
class RemoteFile:
    """A file of a repository."""

    name: str
    size_bytes: int
    sha256: str | None


class ModelScopeFiles:
    """Files of models, or of datasets; what goes wrong is a ``ModelScopeError``."""

    def __init__(self, kind: Kind = "models") -> None:
        self.kind = kind
        self.endpoint = (os.environ.get("MODELSCOPE_ENDPOINT") or ENDPOINT).rstrip("/")
        self.token = os.environ.get(TOKEN_VARIABLE) or None

    def open_client(
        self, *, follow_redirects: bool, timeout: httpx.Timeout = TIMEOUT
    ) -> AbstractContextManager[httpx.Client]:
        """Open an HTTP client for files, possibly on another host; a platform can restrict addresses."""
        return httpx.Client(timeout=timeout, follow_redirects=follow_redirects)

    def list_files(self, repo_id: str, revision: str) -> list[RemoteFile]:
        """List the files of a revision."""
        asked = {"Revision": revision, "Recursive": "True"}
        if self.kind == "datasets":
            return self._list_dataset(repo_id, asked)
        return _files_of(self.ask("GET", f"models/{repo_id}/repo/files", params=asked))

    def _list_dataset(self, repo_id: str, asked: dict[str, str]) -> list[RemoteFile]:
        """List the files of a dataset page by page; the listing needs the dataset's numeric ID."""
        number = as_object(self.ask("GET", f"datasets/{repo_id}"))["Id"]
        found: list[RemoteFile] = []
        for page in range(1, _MAX_PAGES + 1):
            paging = {"Root": "/", "PageNumber": str(page), "PageSize": str(_PAGE_FILES)}
            data = as_object(self.ask("GET", f"datasets/{number}/repo/tree", params={**asked, **paging}))
            found += _files_of(data)
            if len(data["Files"] or []) < _PAGE_FILES:
                return found
        raise ModelScopeError(f"'{repo_id}' has more than {_PAGE_FILES * _MAX_PAGES} files.")

    def download_file(self, repo_id: str, revision: str, file: RemoteFile, folder: Path) -> None:
        """Fetch one; what an earlier try left in the folder is continued."""
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
            raise ModelScopeError(
                f"{file.name} of '{repo_id}' has SHA-256 {found}, not the one that ModelScope names. Retry."
            )
        part.replace(target)

    def _stream(self, repo_id: str, revision: str, file: RemoteFile, part: Path) -> None:
        """Append to what is there; a server that knows no ranges starts the file anew.

        So does a file without a SHA-256: whether its beginning fits what follows would not show.
        """
        begins = part.stat().st_size if part.is_file() and file.sha256 is not None else 0
        if begins == file.size_bytes > 0:
            return
        ranges = {"Range": f"bytes={begins}-"} if 0 < begins < file.size_bytes else {}
        asked = {"Revision": revision, "FilePath": file.name}
        with (
            self.open_client(follow_redirects=True) as client,
            client.stream(
                "GET",
                f"{self.endpoint}/api/v1/{self.kind}/{repo_id}/repo",
                params=asked,
                # Ranges count the bytes that are sent: compressed, they would not be those of the file.
                headers={**self.headers, **ranges, "Accept-Encoding": "identity"},
            ) as answer,
        ):
            answer.raise_for_status()
            is_continued = answer.status_code == httpx.codes.PARTIAL_CONTENT
            with part.open("ab" if is_continued else "wb") as out:
                # As they come: what is gathered to larger pieces would be lost where the connection breaks.
                for chunk in answer.iter_bytes():
                    out.write(chunk)

    def ask(self, method: str, path: str, **more: Any) -> Any:
        """Send a request and return the response's ``Data``; error codes in a 200 response raise too."""
        url = f"{self.endpoint}/api/v1/{path}"
        answer = httpx.request(method, url, headers=self.headers, timeout=TIMEOUT, **more)
        answer.raise_for_status()
        body = as_object(answer.json())
        code = body.get("Code", httpx.codes.OK)
        if code != httpx.codes.OK or body.get("Success") is False:
            refused = httpx.Response(int(code) if 400 <= int(code) < 600 else 400, request=answer.request)
            raise httpx.HTTPStatusError(str(body.get("Message")), request=answer.request, response=refused)
        return body.get("Data", body)

    @property
    def headers(self) -> dict[str, str]:
        """Of every request to the endpoint."""
        if self.token is None:
            return {}
        # Older parts of the API read the cookie, newer ones the header.
        return {"Authorization": f"Bearer {self.token}", "Cookie": f"m_session_id={self.token}"}


def _files_of(listing: Any) -> list[RemoteFile]:
    return [
        RemoteFile(str(each["Path"]), int(each.get("Size") or 0), each.get("Sha256") or None)
        for each in map(as_object, as_object(listing)["Files"] or [])
        if each.get("Type") != "tree"
    ]


def check_hashes(files: list[RemoteFile], repo_id: str) -> list[RemoteFile]:
    """Return the files unchanged; raises ``ModelScopeError`` if a weights file has no SHA-256."""
    for file in files:
        if file.sha256 is None and file.name.lower().endswith(_WEIGHTS):
            raise ModelScopeError(
                f"ModelScope lists {file.name} of '{repo_id}' without a SHA-256 to check it by."
            )
    return files


def _check_name(name: str) -> PurePosixPath:
    """Return the name as a relative path inside the folder; names from a listing are not trusted."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise ModelScopeError("ModelScope names a file outside of the repository.")
    return path


def _name_part(target: Path, file: RemoteFile, revision: str) -> Path:
    """Return the path of an unfinished file: another revision's file of the same name is not continued."""
    mark = file.sha256[:_PART_DIGITS] if file.sha256 else hashlib.sha256(revision.encode()).hexdigest()
    return target.with_name(f"{target.name}.{mark[:_PART_DIGITS]}.part")


def as_object(value: Any) -> dict[str, Any]:
    """Return the value if it is a JSON object. Raises ``ValueError`` otherwise."""
    if not isinstance(value, dict):
        raise ValueError(f"no object, but {type(value).__name__}")
    return value


@contextmanager
def explained(what: str = "model") -> Iterator[None]:
    """Turn what httpx raises into one sentence without addresses or secrets."""
    try:
        yield
    except httpx.HTTPStatusError as error:
        status = error.response.status_code
        if status in _REFUSED:
            raise ModelScopeError(f"ModelScope refuses (status {status}): check {TOKEN_VARIABLE}.") from error
        if status == httpx.codes.NOT_FOUND:
            raise ModelScopeError(
                f"ModelScope has no such {what} or revision, or {TOKEN_VARIABLE} may not read it."
            ) from error
        raise ModelScopeError(f"ModelScope answered with status {status}.") from error
    except httpx.HTTPError as error:
        told = "ModelScope can't be reached, or the connection broke off; try again."
        raise ModelScopeAway(told) from error
    except (ValueError, KeyError, TypeError, httpx.InvalidURL) as error:  # no JSON, or of another form
        raise ModelScopeError("ModelScope gave an unexpected answer.") from error
