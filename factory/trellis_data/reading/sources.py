"""Where files come from: this machine, a data root, a dataset of the hub, or an S3 bucket.

A source lists its files and brings one at a time into a work folder, so that the disk holds one
of them however many there are.
"""

import os
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any

from trellis_data.guarded_clients import guard_hub, open_s3
from trellis_data.operator import OperatorProblem
from trellis_data.reading.kinds import can_be_read


@dataclass(frozen=True)
class SourceFile:
    """A file of a source: its name for reports, and its size where the source tells."""

    name: str
    size_bytes: int | None


#: What a card calls a licence of its own.
_LICENCE_NAME = re.compile(r"\S(?:[^\x00-\x1f\x7f]{0,118}\S)?")
#: A licence as hubs name it.
_LICENCE = re.compile(r"[A-Za-z0-9][\w.+-]{0,79}")
#: How the card of a folder states one; no YAML is parsed that strangers wrote.
_STATED_LICENCE = re.compile(
    r"""^(license|license_name):[ \t]*["']?([A-Za-z0-9][\w.+-]{0,79})["']?[ \t]*$""", re.MULTILINE
)
_MAX_CARD_BYTES = 64 * 1024


class SourceUnavailable(Exception):
    """The files cannot be had; says why in one sentence, without secrets."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class Source(ABC):
    """Some files."""

    #: What the source calls the exact state that is read.
    revision: str | None = None
    #: What its card says of its licences, once the files are listed.
    licences: Sequence[str] = ()

    @abstractmethod
    def describe(self) -> str:
        """Describe the source in words that fit in a sentence."""

    @abstractmethod
    def list_files(self) -> list[SourceFile]:
        """List the files that should contain rows, in a stable order."""

    @abstractmethod
    def bring(self, file: SourceFile, work: Path) -> Path:
        """Return the file on this machine, copied to ``work`` if necessary."""


class LocalSource(Source):
    """A file, or the readable files of a folder and its subfolders."""

    def __init__(self, path: Path, *, name: str | None = None) -> None:
        """Read a local file or folder; ``name`` is the file's original name."""
        self._path = path
        self._name = name or path.name

    def describe(self) -> str:
        return self._name

    def list_files(self) -> list[SourceFile]:
        if self._path.is_file():
            return [SourceFile(self._name, self._path.stat().st_size)]
        if not self._path.is_dir():
            raise SourceUnavailable("source_missing", f"File or folder '{self._name}' not found.")
        root = self._path.resolve()
        self.licences = _read_card(self._path / "README.md", root)
        found = []
        for path in sorted(self._path.rglob("*")):
            relative = path.relative_to(self._path)
            is_hidden = any(part.startswith(".") for part in relative.parts)
            # A link may lead out of the folder that was named.
            is_inside = path.is_file() and path.resolve().is_relative_to(root)
            if is_inside and not is_hidden and can_be_read(path.name):
                found.append(SourceFile(relative.as_posix(), path.stat().st_size))
        return found

    def bring(self, file: SourceFile, work: Path) -> Path:  # noqa: ARG002 - nothing needs copying
        return self._path if self._path.is_file() else self._path / file.name


def source_inside(root: Path, relative: str) -> LocalSource:
    """Return a file or folder under a data root; raise SourceUnavailable for a path that leads out of it."""
    candidate = PurePosixPath(relative)
    base = root.resolve()
    is_outside = candidate.is_absolute() or ".." in candidate.parts or "\x00" in relative or "\\" in relative
    if is_outside or not (path := base / candidate).resolve().is_relative_to(base):
        raise SourceUnavailable("source_outside", f"'{relative[:200]}' is outside the data root.")
    if not path.exists():
        raise SourceUnavailable("source_missing", f"'{relative[:200]}' not found in the data root.")
    return LocalSource(path.resolve(), name=relative)


class HubSource(Source):
    """A dataset of the hub that ``HF_ENDPOINT`` names, at one commit; the token is in ``HF_TOKEN``."""

    def __init__(self, repo_id: str, *, revision: str = "main", under: str = "") -> None:
        """Read a dataset of the Hugging Face Hub; ``under`` restricts it to a folder or a file."""
        from huggingface_hub import HfApi
        from huggingface_hub import constants as hub_constants

        self._repo_id = repo_id
        self._wanted = revision
        self._under = under.strip("/")
        endpoint = os.environ.get("HF_ENDPOINT") or hub_constants.ENDPOINT
        guard_hub(endpoint)
        # False: a token that lies in someone's home folder is not ours to use.
        self._api = HfApi(endpoint=endpoint, token=os.environ.get("HF_TOKEN") or False)

    def describe(self) -> str:
        return f"{self._repo_id}@{self.revision or self._wanted}"

    def list_files(self) -> list[SourceFile]:
        """List the files and fix the commit of the branch or tag, from which all files are then read."""
        with _HubErrors(self._repo_id, self._wanted):
            found = self._api.dataset_info(self._repo_id, revision=self._wanted, files_metadata=True)
        if not found.sha:
            raise SourceUnavailable("hub_no_commit", f"The hub names no commit for '{self.describe()}'.")
        self.revision = found.sha
        self.licences = _find_licences(found.card_data, found.tags or [])
        names = [(file.rfilename, file.size) for file in found.siblings or []]
        return [
            SourceFile(name, size)
            for name, size in sorted(names)
            if can_be_read(name)
            and (not self._under or name == self._under or name.startswith(f"{self._under}/"))
            and not is_metadata(name)
        ]

    def bring(self, file: SourceFile, work: Path) -> Path:
        with _HubErrors(self._repo_id, self._wanted):
            path = self._api.hf_hub_download(
                self._repo_id,
                file.name,
                repo_type="dataset",
                revision=self.revision or self._wanted,
                local_dir=work / "hub",
            )
        return Path(path)


def is_metadata(name: str) -> bool:
    """Return whether a file only describes a dataset and has no rows."""
    return PurePosixPath(name).name in ("dataset_infos.json", "state.json", "dataset_info.json")


def _read_card(path: Path, root: Path) -> list[str]:
    """Read the license in the front matter of a folder's card; empty if there is none."""
    if not (path.is_file() and path.resolve().is_relative_to(root)):
        return []
    with path.open("rb") as file:
        lines = file.read(_MAX_CARD_BYTES).decode("utf-8", "replace").splitlines()
    if not lines or lines[0].strip() != "---" or "---" not in lines[1:]:
        return []
    front = "\n".join(lines[1 : lines.index("---", 1)])
    return _find_licences(dict(_STATED_LICENCE.findall(front)), [])


def _find_licences(card: Any, tags: Sequence[str]) -> list[str]:
    """Find the licenses in a dataset's card by the hub's names; ``license_name`` for a custom one.

    https://huggingface.co/docs/hub/datasets-cards
    """
    said = card or {}  # the hub client's own kind of mapping
    stated = said.get("license")
    found = stated if isinstance(stated, list) else [stated]
    if not any(found):
        found = [tag.removeprefix("license:") for tag in tags if tag.startswith("license:")]
    own = said.get("license_name")
    own = own if isinstance(own, str) and _LICENCE_NAME.fullmatch(own) else None
    named = [own if each == "other" and own else each for each in found if isinstance(each, str)]
    return [each for each in dict.fromkeys(named) if each == own or _LICENCE.fullmatch(each)]


class _HubErrors:
    """Turns the hub client's errors into one sentence."""

    def __init__(self, repo_id: str, revision: str) -> None:
        self._repo_id = repo_id
        self._revision = revision

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is not None and (found := self._explain(error)):
            raise SourceUnavailable(*found) from error

    def _explain(self, error: BaseException) -> tuple[str, str] | None:
        import httpx
        from huggingface_hub import errors

        repo = self._repo_id
        if isinstance(error, OperatorProblem):
            return "hub_unreachable", f"The hub leads to an address that isn't opened. {error.message}"
        if isinstance(error, errors.GatedRepoError):
            return "hub_gated", f"'{repo}' is gated: accept its terms on the hub and set HF_TOKEN."
        if isinstance(error, errors.RepositoryNotFoundError):
            return "hub_no_dataset", f"Dataset '{repo}' not found on the Hub, or HF_TOKEN has no access."
        if isinstance(error, errors.RevisionNotFoundError):
            return "hub_no_revision", f"'{repo}' has no revision '{self._revision}'."
        if isinstance(error, errors.HFValidationError):
            return "hub_bad_name", f"'{repo[:100]}' is not a valid dataset name."
        if isinstance(error, errors.HfHubHTTPError):
            return "hub_refused", f"The hub answered with status {error.response.status_code}."
        if isinstance(error, errors.LocalEntryNotFoundError | httpx.HTTPError):
            return "hub_unreachable", "Can't reach the Hub."
        return None


class S3Source(Source):
    """An object, or the readable objects below a prefix; credentials are those of the environment."""

    def __init__(self, url: str, *, options: dict[str, Any] | None = None) -> None:
        """Read from S3; ``options`` are those of s3fs, such as ``endpoint_url``."""
        if not url.startswith("s3://") or not url.removeprefix("s3://").strip("/"):
            raise SourceUnavailable(
                "source_bad_address", f"'{url[:200]}' is not a URL like s3://bucket/folder."
            )
        self._url = url
        self._options = options or {}
        self._root = url.removeprefix("s3://").rstrip("/")

    def describe(self) -> str:
        return self._url

    def list_files(self) -> list[SourceFile]:
        with _S3Errors(self._url):
            listed = self._files.find(self._root, detail=True)
        found = []
        for key, info in sorted(listed.items()):
            is_one = key == self._root
            name = PurePosixPath(key).name if is_one else key.removeprefix(f"{self._root}/")
            if is_one or can_be_read(key):
                found.append(SourceFile(name, info.get("size")))
        if not listed:
            raise SourceUnavailable("source_missing", f"Nothing found at {self._url}.")
        return found

    def bring(self, file: SourceFile, work: Path) -> Path:
        target = work / "object"
        is_one = file.name == PurePosixPath(self._root).name and not self._is_folder()
        key = self._root if is_one else f"{self._root}/{file.name}"
        with _S3Errors(self._url), self._files.open(key, "rb") as remote, target.open("wb") as local:
            shutil.copyfileobj(remote, local, 4 * 1024 * 1024)
        return target

    def _is_folder(self) -> bool:
        return not self._files.isfile(self._root)

    @cached_property
    def _files(self) -> Any:
        return open_s3(self._options)


class _S3Errors:
    """Turns the client's errors into one sentence."""

    def __init__(self, url: str) -> None:
        self._url = url

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        from botocore.exceptions import BotoCoreError, ClientError

        if isinstance(error, FileNotFoundError):
            raise SourceUnavailable("source_missing", f"Nothing found at {self._url}.") from error
        if refusal := _find_refusal(error):
            said = f"{self._url} is at an address that isn't opened. {refusal.message}"
            raise SourceUnavailable("source_unreachable", said) from error
        if isinstance(error, PermissionError):
            raise SourceUnavailable(
                "source_refused", f"Access to {self._url} denied with these keys."
            ) from error
        if isinstance(error, ClientError | BotoCoreError | OSError):
            raise SourceUnavailable(
                "source_unreachable", f"{self._url} cannot be read: {type(error).__name__}."
            ) from error


def _find_refusal(error: BaseException | None) -> OperatorProblem | None:
    """Find the refused address that caused a client's error, or None."""
    while error is not None and not isinstance(error, OperatorProblem):
        error = error.__cause__ or error.__context__
    return error
