"""``client.datasets``, ``client.pipelines`` and ``client.data_tasks``: rows, their versions, work on them."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, cast

from trellis.resource import Resource
from trellis.transport import given
from trellis.types import (
    DatasetRead,
    DatasetRows,
    DataTaskRead,
    PipelineChecked,
    PipelineRead,
    RefsRead,
    RunRead,
    StatisticsRead,
    VersionRead,
)

_ROWS_PAGE = 100
_TASK_OVER = frozenset({"succeeded", "failed", "cancelled"})


class Datasets(Resource[DatasetRead, DatasetRead]):
    """Rows."""

    path = "/datasets"

    def upload(self, file: Path | str, *, name: str | None = None) -> DatasetRead:
        """Create a dataset from a file: JSON lines, CSV, Parquet or Arrow.

        Its rows are imported afterwards: call ``wait`` before using it.
        """
        path = Path(file)
        with path.open("rb") as handle:
            answer = self._api.request(
                "POST", self.path, data={"name": name or path.stem}, files={"file": (path.name, handle)},
                timeout=None,
            )  # fmt: skip
        return cast(DatasetRead, answer)

    def import_hub(
        self,
        repo_id: str,
        *,
        name: str | None = None,
        revision: str | None = None,
        hub: Literal["huggingface", "modelscope"] = "huggingface",
        **more: Any,
    ) -> DatasetRead:
        """Import a dataset from a hub (``owner/name``); ``more`` is as in ``POST /datasets/imports``.

        Call ``wait`` before using it.
        """
        source = given(kind="hub", hub=hub, repo_id=repo_id, revision=revision)
        return self.import_from(source, name=name, **more)

    def import_from(self, source: Mapping[str, Any], *, name: str | None = None, **more: Any) -> DatasetRead:
        """Import rows from elsewhere: ``{"kind": "path", "path": ...}``, ``{"kind": "s3", "url": ...}``."""
        return cast(DatasetRead, self._post("/imports", given(source=dict(source), name=name, **more)))

    def wait(self, dataset_id: str, *, timeout_s: float | None = None) -> DatasetRead:
        """Wait until the dataset is ready or its import has failed; may raise ``TimeoutError``."""
        return self._wait(dataset_id, frozenset({"ready", "failed"}), timeout_s)

    def rows(
        self, dataset_id: str, *, version: str | None = None, split: str | None = None, offset: int = 0
    ) -> Iterator[dict[str, Any]]:
        """Iterate over the rows from ``offset`` on; very long values may be cut (``page`` tells which)."""
        while True:
            page = self.page(dataset_id, version=version, split=split, offset=offset, limit=_ROWS_PAGE)
            yield from page["rows"]
            offset += len(page["rows"])
            if not page["rows"] or offset >= page["row_count"]:
                return

    def page(
        self,
        dataset_id: str,
        *,
        version: str | None = None,
        split: str | None = None,
        offset: int = 0,
        limit: int = 50,
    ) -> DatasetRows:
        """Return some rows, with the columns and the total number of rows."""
        params = given(version=version, split=split, offset=offset, limit=limit)
        return cast(DatasetRows, self._api.request("GET", f"{self.path}/{dataset_id}/rows", params=params))

    def download(
        self,
        dataset_id: str,
        target: Path | str,
        *,
        version: str | None = None,
        split: str | None = None,
        form: Literal["jsonl", "csv", "parquet"] = "jsonl",
    ) -> Path:
        """Download a whole split as a file."""
        path = f"{self.path}/{dataset_id}/download"
        return self._api.download(path, Path(target), version=version, split=split, form=form)

    def versions(self, dataset_id: str, *, branch: str | None = None) -> Iterator[VersionRead]:
        """Iterate over the dataset's versions, newest first."""
        return self._api.pages(f"{self.path}/{dataset_id}/versions", branch=branch)

    def refs(self, dataset_id: str) -> RefsRead:
        """Return the dataset's branches and tags."""
        return cast(RefsRead, self._api.request("GET", f"{self.path}/{dataset_id}/refs"))

    def tag(self, dataset_id: str, name: str, *, version: str = "main") -> None:
        """Name a version for good."""
        self._post(f"/{dataset_id}/tags", {"name": name, "version": version})

    def branch(self, dataset_id: str, name: str, *, version: str = "main") -> None:
        """Begin a branch at a version."""
        self._post(f"/{dataset_id}/branches", {"name": name, "version": version})

    def statistics(self, dataset_id: str, *, version: str | None = None) -> StatisticsRead:
        """Return the statistics of a version's rows."""
        path = f"{self.path}/{dataset_id}/statistics"
        return cast(StatisticsRead, self._api.request("GET", path, params=given(version=version)))


class DataTasks(Resource[DataTaskRead, DataTaskRead]):
    """Work on data: imports, pipelines, statistics."""

    path = "/data-tasks"

    def stop(self, task_id: str) -> DataTaskRead:
        """End it; what it has done is kept for ``resume``."""
        return cast(DataTaskRead, self._post(f"/{task_id}/cancel"))

    def resume(self, task_id: str) -> DataTaskRead:
        """Go on where it stopped."""
        return cast(DataTaskRead, self._post(f"/{task_id}/retry"))

    def wait(self, task_id: str, *, timeout_s: float | None = None) -> DataTaskRead:
        """Wait until the task has ended; may raise ``TimeoutError``."""
        return self._wait(task_id, _TASK_OVER, timeout_s)


class Pipelines(Resource[PipelineRead, PipelineRead]):
    """Saved data pipelines, and runs of them."""

    path = "/pipelines"

    def check(self, pipeline: Mapping[str, Any] | str) -> PipelineChecked:
        """Check a pipeline, given as a document or as YAML, and return its problems."""
        body = {"yaml": pipeline} if isinstance(pipeline, str) else {"pipeline": dict(pipeline)}
        return cast(PipelineChecked, self._post("/validate", body))

    def save(self, pipeline: Mapping[str, Any], *, message: str = "") -> PipelineRead:
        """Keep a pipeline under its name."""
        return cast(PipelineRead, self._post("", {"pipeline": dict(pipeline), "message": message}))

    def submit(self, dataset: str, **order: Any) -> RunRead:
        """Run one over a dataset, as in ``POST /pipelines/runs`` (pipeline or pipeline_id, output ...)."""
        return cast(RunRead, self._post("/runs", {"dataset": dataset, **order}))

    def run(self, task_id: str) -> RunRead:
        """Return a run, with its report once it succeeded; ``client.data_tasks`` can wait for or stop it."""
        return cast(RunRead, self._api.request("GET", f"{self.path}/runs/{task_id}"))

    def runs(self, **filters: Any) -> Iterator[RunRead]:
        """Iterate over runs, newest first; filters: dataset, version, pipeline, purpose."""
        return self._api.pages(f"{self.path}/runs", **filters)
