"""Downloads from a hub into a folder: models (safetensors and text, never pickles), and files of data."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import httpx
from huggingface_hub import HfApi
from huggingface_hub import constants as hub_constants
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    IncompleteSnapshotError,
    LocalEntryNotFoundError,
    RepositoryNotFoundError,
    RevisionNotFoundError,
)
from trellis_data.guarded_clients import guard_hub
from trellis_data.operator import OperatorProblem
from trellis_recipes.hub_names import PATTERNS, is_needed

Kind = Literal["dataset", "model"]


class FetchFailed(Exception):
    """The files cannot be had; the message is one sentence for people."""


@dataclass(frozen=True)
class Snapshot:
    """A commit of a repository and the size of the files that would be fetched."""

    commit: str
    size_bytes: int


class Hub:
    """The hub that ``HF_ENDPOINT`` names, with the token in ``HF_TOKEN``; neither is stored."""

    def __init__(self) -> None:
        self._endpoint = os.environ.get("HF_ENDPOINT") or hub_constants.ENDPOINT
        guard_hub(self._endpoint)
        # False: a token that lies in someone's home folder is not ours to use.
        self._token: str | bool = os.environ.get("HF_TOKEN") or False
        self._api = HfApi(endpoint=self._endpoint, token=self._token)

    def resolve(self, repo_id: str, revision: str) -> Snapshot:
        """Return the commit behind a branch or tag, and its size."""
        with _explained(repo_id, revision, self._endpoint):
            found = self._api.model_info(repo_id, revision=revision, files_metadata=True)
        if not found.sha:
            raise FetchFailed(f"The Hub returned no commit for '{repo_id}' at '{revision}'.")
        sizes = [file.size or 0 for file in found.siblings or [] if is_needed(file.rfilename)]
        return Snapshot(found.sha, sum(sizes))

    def download(self, repo_id: str, commit: str, folder: Path) -> None:
        """Fetch the files; what an earlier try left in the folder is continued."""
        with _explained(repo_id, commit, self._endpoint):
            self._api.snapshot_download(
                repo_id, revision=commit, local_dir=folder, allow_patterns=PATTERNS, max_workers=4
            )

    def resolve_files(
        self, repo_id: str, revision: str, files: Sequence[str], *, kind: Kind = "dataset"
    ) -> Snapshot:
        """Return the commit behind a revision of a repository, and the size of some of its files.

        ``FetchFailed`` where one of them is not there.
        """
        with _explained(repo_id, revision, self._endpoint):
            look = self._api.dataset_info if kind == "dataset" else self._api.model_info
            found = look(repo_id, revision=revision, files_metadata=True)
        if not found.sha:
            raise FetchFailed(f"The Hub returned no commit for '{repo_id}' at '{revision}'.")
        sizes = {file.rfilename: file.size or 0 for file in found.siblings or []}
        if missing := [file for file in files if file not in sizes]:
            raise FetchFailed(f"'{repo_id}' at '{revision}' has no file {missing[0]}.")
        return Snapshot(found.sha, sum(sizes[file] for file in files))

    def download_files(
        self, repo_id: str, commit: str, files: Sequence[str], folder: Path, *, kind: Kind = "dataset"
    ) -> None:
        """Fetch some files of a repository, each at its path under the folder."""
        with _explained(repo_id, commit, self._endpoint):
            for file in files:
                self._api.hf_hub_download(repo_id, file, repo_type=kind, revision=commit, local_dir=folder)


class _explained:
    """Turns the hub client's errors into one sentence, free of addresses with secrets."""

    def __init__(self, repo_id: str, revision: str, endpoint: str) -> None:
        self._repo_id = repo_id
        self._revision = revision
        self._host = httpx.URL(endpoint).host

    def __enter__(self) -> None:
        return None

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if error is None:
            return
        if message := self._explain(error):
            raise FetchFailed(message) from error

    def _explain(self, error: BaseException) -> str | None:
        if isinstance(error, OperatorProblem):
            return f"{self._host} leads to an address that isn't opened. {error.message}"
        if isinstance(error, GatedRepoError):
            return (
                f"'{self._repo_id}' is gated: accept its terms on the Hub and set HF_TOKEN for the workers."
            )
        if isinstance(error, RepositoryNotFoundError):
            return f"'{self._repo_id}' was not found on {self._host}, or HF_TOKEN has no read access."
        if isinstance(error, RevisionNotFoundError):
            return f"'{self._repo_id}' has no revision '{self._revision}'."
        if isinstance(error, HfHubHTTPError):
            return f"{self._host} returned HTTP {error.response.status_code}."
        if isinstance(error, IncompleteSnapshotError | LocalEntryNotFoundError | httpx.HTTPError):
            return f"{self._host} cannot be reached."
        return None
