"""``trellis.Client``: jobs, pipelines of jobs, models, datasets, evaluations and what agents need.

What the API answers is handed on as it is; docs at ``/docs`` of the platform tell every field.
"""

import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import httpx
from trellis_contracts.states import FINISHED

API = "/api/v1"
Json = dict[str, Any]
_POLL_S = 1.0


class ApiError(RuntimeError):
    """The platform refused, or did not answer (``status`` None)."""

    def __init__(self, message: str, *, status: int | None = None, code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        #: The API's name for what went wrong.
        self.code = code


class Client:
    """A platform, reached with a token; use it in a ``with`` block or ``close`` it."""

    def __init__(
        self, url: str, token: str, *, timeout_s: float = 60.0, transport: httpx.BaseTransport | None = None
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        self._http = httpx.Client(
            base_url=url.rstrip("/"), headers=headers, timeout=timeout_s, transport=transport
        )
        self.jobs = Jobs(self)
        self.models = Models(self)
        self.datasets = Datasets(self)
        self.evaluations = Evaluations(self)
        self.workflows = Workflows(self)
        self.environments = Environments(self)
        self.job_pipelines = JobPipelines(self)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._http.close()

    def request(self, method: str, path: str, **options: Any) -> Any:
        """The decoded answer of an endpoint below /api/v1; ``ApiError`` in the API's own words."""
        try:
            answer = self._http.request(method, f"{API}{path}", **options)
        except httpx.HTTPError as error:
            raise ApiError(f"the platform at {self._http.base_url} does not answer ({error})") from error
        if answer.is_error:
            raise _read_error(answer)
        return answer.json() if answer.content else None

    def pages(self, path: str, **params: Any) -> Iterator[Json]:
        """Every item of a paged list."""
        cursor: str | None = None
        while True:
            page = self.request("GET", path, params=_given(cursor=cursor, **params))
            yield from page["items"]
            cursor = page.get("next_cursor")
            if not cursor:
                return


class _Resource:
    path = ""

    def __init__(self, client: Client) -> None:
        self._client = client

    def get(self, identifier: str) -> Json:
        """One of them."""
        return dict(self._client.request("GET", f"{self.path}/{identifier}"))

    def list(self, **filters: Any) -> Iterator[Json]:
        """All of them, newest first."""
        return self._client.pages(self.path, **filters)

    def delete(self, identifier: str) -> None:
        """Forget it."""
        self._client.request("DELETE", f"{self.path}/{identifier}")

    def _wait(self, identifier: str, states: frozenset[str], timeout_s: float | None) -> Json:
        deadline = None if timeout_s is None else time.monotonic() + timeout_s
        while True:
            found = self.get(identifier)
            if found["state"] in states:
                return found
            if deadline is not None and time.monotonic() > deadline:
                raise TimeoutError(f"{identifier} is still {found['state']} after {timeout_s:g} s")
            time.sleep(_POLL_S)


class Jobs(_Resource):
    """Trainings."""

    path = "/jobs"

    def submit(
        self,
        *,
        recipe: str,
        model: str,
        dataset: str,
        name: str | None = None,
        preset: str | None = None,
        params: Mapping[str, Any] | None = None,
        overrides: Mapping[str, Any] | None = None,
        **more: Any,
    ) -> Json:
        """Queue a job; ``more`` as in ``POST /jobs`` (validation_dataset, seed, priority, tags ...)."""
        body = _given(
            name=name or recipe, recipe=recipe, model=model, dataset=dataset, preset=preset,
            params=dict(params or {}), overrides=dict(overrides or {}), **more,
        )  # fmt: skip
        return dict(self._client.request("POST", self.path, json=body))

    def wait(self, job_id: str, *, timeout_s: float | None = None) -> Json:
        """The job when it has ended, however it did; ``TimeoutError``."""
        return self._wait(job_id, FINISHED, timeout_s)

    def resume(self, job_id: str, *, step: int | None = None) -> Json:
        """Let it go on from its newest checkpoint, or from that of ``step``."""
        return dict(
            self._client.request("POST", f"{self.path}/{job_id}/resume", json=_given(checkpoint_step=step))
        )

    def stop(self, job_id: str) -> Json:
        """Let it leave at a checkpoint."""
        return dict(self._client.request("POST", f"{self.path}/{job_id}/stop"))

    def metrics(self, job_id: str, keys: Sequence[str] | None = None) -> dict[str, dict[int, float | None]]:
        """Curves by key: step → value. All keys where none are named."""
        if keys is None:
            known = self._client.request("GET", f"{self.path}/{job_id}/metric-keys")
            keys = [each["key"] for each in known]
        if not keys:
            return {}
        read = self._client.request("GET", f"{self.path}/{job_id}/metrics", params={"keys": ",".join(keys)})
        return {each["key"]: dict(zip(each["steps"], each["values"], strict=True)) for each in read["series"]}


class Models(_Resource):
    """Weights."""

    path = "/models"

    def register(self, source: str, *, name: str | None = None) -> Json:
        """Weights that lie under the platform's data root, as a relative path."""
        body = {"name": name or source, "source": {"kind": "local", "path": source}}
        return dict(self._client.request("POST", self.path, json=body))


class Datasets(_Resource):
    """Rows."""

    path = "/datasets"

    def upload(self, file: Path | str, *, name: str | None = None) -> Json:
        """A new dataset of a file: JSON lines, CSV, Parquet or Arrow."""
        path = Path(file)
        with path.open("rb") as handle:
            return dict(
                self._client.request(
                    "POST", self.path, data={"name": name or path.stem},
                    files={"file": (path.name, handle)}, timeout=None,
                )
            )  # fmt: skip

    def wait(self, dataset_id: str, *, timeout_s: float | None = None) -> Json:
        """The dataset when it can be used, or its import has failed; ``TimeoutError``."""
        return self._wait(dataset_id, frozenset({"ready", "failed"}), timeout_s)


class Evaluations(_Resource):
    """Measurements on benchmarks."""

    path = "/evaluations"

    def submit(self, **order: Any) -> list[Json]:
        """As in ``POST /evaluations`` (targets, benchmarks, engine ...)."""
        return [dict(each) for each in self._client.request("POST", self.path, json=order)["items"]]

    def wait(self, evaluation_id: str, *, timeout_s: float | None = None) -> Json:
        """The evaluation when it has ended; ``TimeoutError``."""
        return self._wait(evaluation_id, FINISHED, timeout_s)


class JobPipelines(_Resource):
    """Stages of jobs, each with what those before it made."""

    path = "/job-pipelines"

    def submit(self, name: str, stages: Sequence[Mapping[str, Any]], *, start: bool = True) -> Json:
        """As in ``POST /job-pipelines``; what is wrong with any stage is refused at once."""
        body = {"name": name, "stages": [dict(stage) for stage in stages], "start": start}
        return dict(self._client.request("POST", self.path, json=body))

    def start(self, pipeline_id: str) -> Json:
        """Run it again; stages whose inputs did not change are skipped."""
        return dict(self._client.request("POST", f"{self.path}/{pipeline_id}/start"))

    def stop(self, pipeline_id: str) -> Json:
        """Begin no more stages; those that run leave at a checkpoint."""
        return dict(self._client.request("POST", f"{self.path}/{pipeline_id}/stop"))

    def wait(self, pipeline_id: str, *, timeout_s: float | None = None) -> Json:
        """The pipeline when it has ended, however it did; ``TimeoutError``."""
        return self._wait(pipeline_id, frozenset({"succeeded", "failed", "stopped"}), timeout_s)


class Workflows(_Resource):
    """Workflow files, for the recipe ``tune``."""

    path = "/workflows"

    def upload(self, file: Path | str, *, name: str | None = None, function: str | None = None) -> Json:
        """A Python file with ``async def workflow(task, model)``."""
        path = Path(file)
        body = _given(name=name or path.stem, code=path.read_text(), function=function)
        return dict(self._client.request("POST", self.path, json=body))


class Environments(_Resource):
    """What agents act in."""

    path = "/environments"

    def make(self, kind: str, *, name: str | None = None, **parameters: Any) -> Json:
        """Have one made; ``wait`` for it to be ready."""
        body = {"name": name or kind, "kind": kind, "parameters": parameters}
        return dict(self._client.request("POST", self.path, json=body))

    def wait(self, environment_id: str, *, timeout_s: float | None = None) -> Json:
        """The environment when it is ready, or its making has failed; ``TimeoutError``."""
        return self._wait(environment_id, frozenset({"ready", "failed"}), timeout_s)


def _given(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value is not None}


def _read_error(answer: httpx.Response) -> ApiError:
    try:
        body = answer.json()
        message, code = str(body["message"]), body.get("error")
        issues = [each for each in body.get("details") or [] if isinstance(each, dict) and "message" in each]
    except (ValueError, KeyError, TypeError):
        place = f"{answer.request.method} {answer.request.url.path}"
        return ApiError(f"{place}: HTTP {answer.status_code}", status=answer.status_code)
    lines = [message, *(f"  {each.get('field') or ''}: {each['message']}" for each in issues)]
    return ApiError("\n".join(lines), status=answer.status_code, code=code)
