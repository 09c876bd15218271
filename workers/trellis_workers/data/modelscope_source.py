"""Rows of a dataset on ModelScope, as the import reads them of any source."""

from pathlib import Path

from trellis_data.guarded_clients import GuardedModelScope
from trellis_data.operator import OperatorProblem
from trellis_data.reading.kinds import can_be_read
from trellis_data.reading.sources import Source, SourceFile, SourceUnavailable, is_metadata
from trellis_recipes.modelscope import ModelScopeError, RemoteFile, explained


class ModelScopeSource(Source):
    """A dataset of ``MODELSCOPE_ENDPOINT``; the token is in ``MODELSCOPE_API_TOKEN``."""

    def __init__(self, repo_id: str, *, revision: str, under: str = "") -> None:
        """Narrow the source to ``under``, a folder or a file of the dataset."""
        self._repo_id, self._under = repo_id, under.strip("/")
        # It names no commit: a branch may move on, and the rows keep hashes of their own.
        self.revision = revision
        self._hub = GuardedModelScope("datasets")
        self._files: dict[str, RemoteFile] = {}

    def describe(self) -> str:
        return f"modelscope:{self._repo_id}@{self.revision}"

    def list_files(self) -> list[SourceFile]:
        try:
            with explained("dataset"):
                found = self._hub.list_files(self._repo_id, str(self.revision))
        except ModelScopeError as error:
            raise SourceUnavailable("modelscope_failed", f"'{self._repo_id}': {error}") from error
        self._files = {file.name: file for file in sorted(found, key=lambda file: file.name)}
        return [
            SourceFile(name, file.size_bytes)
            for name, file in self._files.items()
            if can_be_read(name)
            and (not self._under or name == self._under or name.startswith(f"{self._under}/"))
            and not is_metadata(name)
        ]

    def bring(self, file: SourceFile, work: Path) -> Path:
        folder = work / "hub"
        try:
            with explained("dataset"):
                self._hub.download_file(self._repo_id, str(self.revision), self._files[file.name], folder)
        except (ModelScopeError, OperatorProblem) as error:
            raise SourceUnavailable("modelscope_failed", f"'{self._repo_id}': {error}") from error
        return folder / file.name
