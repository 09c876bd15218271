"""``trellis.Client``: a platform from Python; every part speaks to its endpoints.

What the API answers is handed on as it is, described by the typed dictionaries of ``trellis.types``.
"""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, cast

import httpx
from trellis_contracts.connection import TOKEN_VARIABLE, URL_VARIABLE, find_connection
from trellis_contracts.states import FINISHED

from trellis.data import Datasets, DataTasks, Pipelines
from trellis.jobs import Jobs
from trellis.resource import Resource
from trellis.transport import ApiError, Json, Transport, given
from trellis.types import (
    BenchmarkRead,
    ComparisonRead,
    DatasetRead,
    DryRunRead,
    EndpointRead,
    EnvironmentRead,
    EvaluationRead,
    JobPipelineRead,
    LineageRead,
    ModelRead,
    NamedModelRead,
    PromotionRead,
    Recipe,
    RecipeRead,
    ReportRead,
    RewardFileRead,
    RewardKindRead,
    SampleRead,
    SweepPreview,
    SweepRead,
    SweepSummary,
    TransferRead,
    UserRead,
    VoteRead,
    WinRate,
    WorkflowDetail,
    WorkflowListed,
    WorkflowRead,
)

__all__ = ["ApiError", "Client"]


class Client:
    """A platform, reached with a token; use it in a ``with`` block or ``close`` it.

    Without arguments it is the platform of ``TRELLIS_URL`` and ``TRELLIS_TOKEN``, else the one of
    ``trellis login``; ``ValueError`` where neither says one.
    """

    def __init__(
        self,
        url: str | None = None,
        token: str | None = None,
        *,
        timeout_s: float = 60.0,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        url, token = _choose_connection(url, token)
        self._api = Transport(url, token, timeout_s=timeout_s, transport=transport)
        self.url = url
        self.jobs = Jobs(self._api)
        self.models = Models(self._api)
        self.endpoints = Endpoints(self._api)
        self.registry = Registry(self._api)
        self.transfers = Transfers(self._api)
        self.votes = Votes(self._api)
        self.datasets = Datasets(self._api)
        self.data_tasks = DataTasks(self._api)
        self.pipelines = Pipelines(self._api)
        self.recipes = Recipes(self._api)
        self.rewards = Rewards(self._api)
        self.benchmarks = Benchmarks(self._api)
        self.evaluations = Evaluations(self._api)
        self.reports = Reports(self._api)
        self.workflows = Workflows(self._api)
        self.environments = Environments(self._api)
        self.job_pipelines = JobPipelines(self._api)
        self.sweeps = Sweeps(self._api)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connections."""
        self._api.close()

    def me(self) -> UserRead:
        """Return the user whose token this is."""
        return cast(UserRead, self.request("GET", "/auth/me"))

    def request(self, method: str, path: str, **options: Any) -> Any:
        """Call any endpoint below /api/v1 and return its decoded answer; raise ``ApiError`` on an error."""
        return self._api.request(method, path, **options)

    def pages(self, path: str, **params: Any) -> Iterator[Json]:
        """Iterate over every item of any paged list."""
        return self._api.pages(path, **params)


def _choose_connection(url: str | None, token: str | None) -> tuple[str, str]:
    """Choose the URL and token: those given, else those of the environment or of `trellis login`."""
    chosen = given(**{URL_VARIABLE: url, TOKEN_VARIABLE: token})
    found = find_connection({**os.environ, **chosen})
    if found is None:
        raise ValueError(
            f"no platform is named: give url and token, set {URL_VARIABLE} and {TOKEN_VARIABLE}, "
            "or run: trellis login URL"
        )
    return found.url, found.token


class Models(Resource[ModelRead, ModelRead]):
    """Weights."""

    path = "/models"

    def register(self, source: str | Mapping[str, Any], *, name: str | None = None) -> ModelRead:
        """Register weights: a relative path under the data root, or a source as in ``POST /models``.

        ``{"kind": "hub", "repo_id": ...}`` or ``{"kind": "catalogue", "name": ...}``; ``wait`` until its
        files are there.
        """
        if isinstance(source, str):
            local = {"kind": "local", "path": source}
            return cast(ModelRead, self._post("", {"name": name or source, "source": local}))
        return cast(ModelRead, self._post("", given(name=name, source=dict(source))))

    def wait(self, model_id: str, *, timeout_s: float | None = None) -> ModelRead:
        """Wait until the model's files are fetched or fetching has failed; may raise ``TimeoutError``."""
        return self._wait(model_id, frozenset({"ready", "failed"}), timeout_s)

    def cancel(self, model_id: str) -> ModelRead:
        """End a download or conversion; ``retry`` continues with what was downloaded."""
        return cast(ModelRead, self._post(f"/{model_id}/cancel"))

    def retry(self, model_id: str) -> ModelRead:
        """Let a failed or cancelled download go on; ``wait`` until the files are there."""
        return cast(ModelRead, self._post(f"/{model_id}/retry"))

    def lineage(self, model_id: str) -> LineageRead:
        """Return what the model was made from and what was made from it."""
        return cast(LineageRead, self._api.request("GET", f"{self.path}/{model_id}/lineage"))


class Registry:
    """Versions of named models, and the aliases that requests name: ``support-bot:production``."""

    def __init__(self, transport: Transport) -> None:
        self._api = transport

    def list(self) -> list[NamedModelRead]:
        """List all names."""
        return cast("list[NamedModelRead]", self._api.request("GET", "/registry")["items"])

    def get(self, name: str) -> NamedModelRead:
        """Return a name with its versions, newest first."""
        return cast(NamedModelRead, self._api.request("GET", f"/registry/{name}"))

    def add(self, name: str, model: str, *, note: str = "") -> NamedModelRead:
        """Add a model, by its id, as the next version of a name."""
        body = {"name": name, "model": model, "note": note}
        return cast(NamedModelRead, self._api.request("POST", "/registry", json=body))

    def promote(
        self, name: str, alias: str, version: int, *, note: str = "", unless_worse: str | None = None
    ) -> NamedModelRead:
        """Let an alias stand on a version; with ``unless_worse`` only if it is no worse on that benchmark."""
        body: dict[str, Any] = {"version": version, "note": note}
        if unless_worse is not None:
            body["gate"] = {"benchmark": unless_worse}
        return cast(NamedModelRead, self._api.request("PUT", f"/registry/{name}/aliases/{alias}", json=body))

    def roll_back(self, name: str, alias: str, *, note: str = "") -> NamedModelRead:
        """Let an alias stand where it stood before."""
        path = f"/registry/{name}/aliases/{alias}/rollback"
        return cast(NamedModelRead, self._api.request("POST", path, json={"note": note}))

    def history(self, name: str) -> Sequence[PromotionRead]:
        """List promotions and rollbacks, newest first."""
        found = self._api.request("GET", f"/registry/{name}/history")["items"]
        return cast("Sequence[PromotionRead]", found)

    def delete(self, name: str) -> None:
        """Forget a name; its models stay."""
        self._api.request("DELETE", f"/registry/{name}")


class Transfers(Resource[TransferRead, TransferRead]):
    """Pushes of models to a hub, and exports to GGUF files."""

    path = "/transfers"

    def push(
        self,
        model: str,
        repo_id: str,
        *,
        revision: str | None = None,
        private: bool = True,
        message: str = "",
        hub: str = "huggingface",
        card: str | None = None,
    ) -> TransferRead:
        """Push a model, by its id, with its card; the token is that of the platform's workers.

        ``card`` is the text of one that you have edited; without it, a new one is written.
        """
        body: dict[str, Any] = {"repo_id": repo_id, "private": private, "message": message, "hub": hub}
        if revision is not None:
            body["revision"] = revision
        if card is not None:
            body["card"] = card
        return cast(TransferRead, self._api.request("POST", f"/models/{model}/push", json=body))

    def export_gguf(self, model: str, *, type: Literal["f16", "q8_0", "q4_k_m"] = "q8_0") -> TransferRead:
        """Export a model, by its id, to a GGUF file; ``wait``, then ``download``."""
        return cast(TransferRead, self._api.request("POST", f"/models/{model}/gguf", json={"type": type}))

    def cancel(self, transfer_id: str) -> TransferRead:
        """End it; nothing is committed to the hub."""
        return cast(TransferRead, self._post(f"/{transfer_id}/cancel"))

    def resume(self, transfer_id: str) -> TransferRead:
        """Let one that failed or was cancelled go on."""
        return cast(TransferRead, self._post(f"/{transfer_id}/resume"))

    def wait(self, transfer_id: str, *, timeout_s: float | None = None) -> TransferRead:
        """Wait until the transfer has ended, in whatever state; may raise ``TimeoutError``."""
        return self._wait(transfer_id, frozenset({"succeeded", "failed", "cancelled"}), timeout_s)

    def download(self, transfer_id: str, target: Path | str) -> Path:
        """Download the file of an export."""
        return self._api.download(f"{self.path}/{transfer_id}/file", Path(target))


class Votes(Resource[VoteRead, VoteRead]):
    """Which of two answers to the same prompt is better."""

    path = "/votes"

    def add(
        self,
        messages: Sequence[Mapping[str, str]],
        a: tuple[str, str],
        b: tuple[str, str],
        verdict: Literal["a", "b", "tie", "neither"],
        *,
        is_blind: bool = False,
    ) -> VoteRead:
        """Vote; ``a`` and ``b`` are (model, answer), the last of the messages is the user's."""
        sides = {name: {"model": model, "text": text} for name, (model, text) in (("a", a), ("b", b))}
        body = {"messages": [dict(each) for each in messages], "verdict": verdict, "is_blind": is_blind}
        return cast(VoteRead, self._post("", {**body, **sides}))

    def win_rates(self, *models: str, blind_only: bool = False) -> Sequence[WinRate]:
        """Return the win rates of all pairs of models, or of those with one or both of these models."""
        params = {**({"model": [*models]} if models else {}), "blind_only": blind_only}
        found = self._api.request("GET", f"{self.path}/win-rates", params=params)["items"]
        return cast("Sequence[WinRate]", found)

    def make_dataset(self, name: str, *models: str, blind_only: bool = False) -> DatasetRead:
        """Make a dataset of preference pairs from votes; ``client.datasets.wait`` until it is imported."""
        body = {"name": name, "models": [*models], "blind_only": blind_only}
        return cast(DatasetRead, self._post("/dataset", body))


class Endpoints(Resource[EndpointRead, EndpointRead]):
    """Models and checkpoints that answer requests; clients of OpenAI's reach them at ``<url>/v1``."""

    path = "/endpoints"

    def start(
        self,
        model: str | None = None,
        *,
        job: str | None = None,
        step: int | None = None,
        idle_timeout_s: float | None = None,
        max_model_len: int | None = None,
        preemptible: bool | None = None,
    ) -> EndpointRead:
        """Serve a model by its id, or the checkpoint of a job's step; ``wait`` until it is ready."""
        if (model is None) == (job is None or step is None):
            raise ValueError("name either a model, or a job and a step")
        place = f"/models/{model}" if model is not None else f"/jobs/{job}/checkpoints/{step}"
        body = {
            "idle_timeout_s": idle_timeout_s,
            "max_model_len": max_model_len,
            "preemptible": preemptible,
        }
        return cast(EndpointRead, self._api.request("POST", f"{place}/endpoint", json=body))

    def stop(self, endpoint_id: str) -> EndpointRead:
        """Give its slot and memory back."""
        return cast(EndpointRead, self._api.request("DELETE", f"{self.path}/{endpoint_id}"))

    def wait(self, endpoint_id: str, *, timeout_s: float | None = None) -> EndpointRead:
        """Wait until the endpoint is ready, has stopped or has failed; may raise ``TimeoutError``."""
        return self._wait(endpoint_id, frozenset({"ready", "stopped", "failed"}), timeout_s)


class Recipes:
    """What can be trained."""

    def __init__(self, transport: Transport) -> None:
        self._api = transport

    def list(self) -> list[Recipe]:
        """List all recipes."""
        return cast("list[Recipe]", self._api.request("GET", "/recipes")["items"])

    def get(self, recipe: str) -> RecipeRead:
        """Return one recipe, with its parameters and presets."""
        return cast(RecipeRead, self._api.request("GET", f"/recipes/{recipe}"))


class Benchmarks:
    """What models can be measured on."""

    def __init__(self, transport: Transport) -> None:
        self._api = transport

    def list(self) -> list[BenchmarkRead]:
        """List the catalogue's benchmarks and whether each is installed."""
        return cast("list[BenchmarkRead]", self._api.request("GET", "/benchmarks")["items"])

    def get(self, name: str) -> BenchmarkRead:
        """Return one benchmark."""
        return cast(BenchmarkRead, self._api.request("GET", f"/benchmarks/{name}"))

    def install(self, name: str) -> BenchmarkRead:
        """Have its files brought."""
        return cast(BenchmarkRead, self._api.request("POST", f"/benchmarks/{name}/install"))


class Rewards:
    """What responses can earn."""

    def __init__(self, transport: Transport) -> None:
        self._api = transport
        self.files = RewardFiles(transport)
        self.dry_runs = DryRuns(transport)

    def list(self) -> list[RewardKindRead]:
        """List every reward that a mixture may contain."""
        return cast("list[RewardKindRead]", self._api.request("GET", "/rewards")["items"])


class RewardFiles(Resource[RewardFileRead, RewardFileRead]):
    """Reward functions of one's own."""

    path = "/rewards/files"

    def upload(self, file: Path | str, *, name: str | None = None) -> RewardFileRead:
        """Upload a Python file with ``score(prompt, response, answer, row)``."""
        path = Path(file)
        return cast(RewardFileRead, self._post("", {"name": name or path.stem, "code": path.read_text()}))


class DryRuns(Resource[DryRunRead, DryRunRead]):
    """Rewards, tried on rows before a run uses them."""

    path = "/rewards/dry-runs"

    def submit(self, dataset: str, rewards: Sequence[Any], **order: Any) -> DryRunRead:
        """Submit a dry run, as in ``POST /rewards/dry-runs`` (rows, seed, job, step ...)."""
        return cast(DryRunRead, self._post("", {"dataset": dataset, "rewards": [*rewards], **order}))

    def stop(self, dry_run_id: str) -> DryRunRead:
        """End it."""
        return cast(DryRunRead, self._post(f"/{dry_run_id}/cancel"))

    def wait(self, dry_run_id: str, *, timeout_s: float | None = None) -> DryRunRead:
        """Wait until the dry run has ended; may raise ``TimeoutError``."""
        return self._wait(dry_run_id, frozenset({"succeeded", "failed", "cancelled"}), timeout_s)


class Evaluations(Resource[EvaluationRead, EvaluationRead]):
    """Measurements on benchmarks."""

    path = "/evaluations"

    def submit(self, **order: Any) -> Sequence[EvaluationRead]:
        """Submit evaluations, as in ``POST /evaluations`` (targets, benchmarks, seed ...)."""
        return cast("Sequence[EvaluationRead]", self._post("", order)["items"])

    def stop(self, evaluation_id: str) -> EvaluationRead:
        """End it; what is done stays."""
        return cast(EvaluationRead, self._post(f"/{evaluation_id}/cancel"))

    def resume(self, evaluation_id: str) -> EvaluationRead:
        """Go on where it stopped."""
        return cast(EvaluationRead, self._post(f"/{evaluation_id}/retry"))

    def wait(self, evaluation_id: str, *, timeout_s: float | None = None) -> EvaluationRead:
        """Wait until the evaluation has ended; may raise ``TimeoutError``."""
        return self._wait(evaluation_id, FINISHED, timeout_s)

    def samples(self, evaluation_id: str, label: str, **filters: Any) -> Iterator[SampleRead]:
        """Iterate over samples; filters: verdict, group_kind, group, search, against, changed."""
        return self._api.pages(f"{self.path}/{evaluation_id}/samples", label=label, **filters)

    def compare(self, *evaluation_ids: str) -> ComparisonRead:
        """Compare two to six evaluations, each with the first, problem by problem."""
        params = {"ids": ",".join(evaluation_ids)}
        return cast(ComparisonRead, self._api.request("GET", f"{self.path}/compare", params=params))


class Reports(Resource[ReportRead, ReportRead]):
    """Evaluations written down."""

    path = "/reports"

    def create(self, name: str, evaluations: Sequence[str], **order: Any) -> ReportRead:
        """Create a report, as in ``POST /reports`` (language, formats, samples); then ``wait`` for it."""
        return cast(ReportRead, self._post("", {"name": name, "evaluations": [*evaluations], **order}))

    def wait(self, report_id: str, *, timeout_s: float | None = None) -> ReportRead:
        """Wait until the report is ready or has failed; may raise ``TimeoutError``."""
        return self._wait(report_id, frozenset({"ready", "failed"}), timeout_s)

    def download(
        self, report_id: str, target: Path | str, *, form: Literal["md", "html", "pdf"] = "pdf"
    ) -> Path:
        """Download one of the report's files."""
        return self._api.download(f"{self.path}/{report_id}/file", Path(target), format=form)


class JobPipelines(Resource[JobPipelineRead, JobPipelineRead]):
    """Stages of jobs, each with what those before it made."""

    path = "/job-pipelines"

    def submit(
        self, name: str, stages: Sequence[Mapping[str, Any]], *, start: bool = True
    ) -> JobPipelineRead:
        """Submit a pipeline, as in ``POST /job-pipelines``; an invalid stage is rejected at once."""
        body = {"name": name, "stages": [dict(stage) for stage in stages], "start": start}
        return cast(JobPipelineRead, self._post("", body))

    def resume(self, pipeline_id: str) -> JobPipelineRead:
        """Begin it, or go on with it; stages whose inputs did not change are skipped."""
        return cast(JobPipelineRead, self._post(f"/{pipeline_id}/start"))

    #: The API's own word.
    start = resume

    def stop(self, pipeline_id: str) -> JobPipelineRead:
        """Begin no more stages; those that run leave at a checkpoint."""
        return cast(JobPipelineRead, self._post(f"/{pipeline_id}/stop"))

    def wait(self, pipeline_id: str, *, timeout_s: float | None = None) -> JobPipelineRead:
        """Wait until the pipeline has ended, in whatever state; may raise ``TimeoutError``."""
        return self._wait(pipeline_id, frozenset({"succeeded", "failed", "stopped"}), timeout_s)


class Sweeps(Resource[SweepRead, SweepSummary]):
    """One training many times, with parameters or seeds that vary."""

    path = "/sweeps"

    def submit(self, name: str, job: Mapping[str, Any], **order: Any) -> SweepRead:
        """Submit a sweep, as in ``POST /sweeps``; the values at the ends of ranges are checked at once."""
        return cast(SweepRead, self._post("", {"name": name, "job": dict(job), **order}))

    def preview(self, name: str, job: Mapping[str, Any], **order: Any) -> SweepPreview:
        """Return what the sweep would run and what is wrong with it, without creating anything."""
        return cast(SweepPreview, self._post("/preview", {"name": name, "job": dict(job), **order}))

    def stop(self, sweep_id: str) -> SweepRead:
        """Begin no more runs; those that run leave at a checkpoint."""
        return cast(SweepRead, self._post(f"/{sweep_id}/stop"))

    def resume(self, sweep_id: str) -> SweepRead:
        """Go on: stopped runs continue from their checkpoints, and the next ones begin."""
        return cast(SweepRead, self._post(f"/{sweep_id}/resume"))

    def wait(self, sweep_id: str, *, timeout_s: float | None = None) -> SweepRead:
        """Wait until the sweep has ended, in whatever state; may raise ``TimeoutError``."""
        return self._wait(sweep_id, frozenset({"succeeded", "failed", "stopped"}), timeout_s)


class Workflows(Resource[WorkflowDetail, WorkflowListed]):
    """Workflow files, for the recipe ``tune``."""

    path = "/workflows"

    def upload(
        self, file: Path | str, *, name: str | None = None, function: str | None = None
    ) -> WorkflowRead:
        """Upload a workflow: a Python file, a folder with ``workflow.py``, or an archive of such a folder.

        The workflow is a function ``async def workflow(task, model)``.

        ``wait`` until the requirements of a package are installed.
        """
        path = Path(file)
        body = given(name=name or path.resolve().name.partition(".")[0], function=function)
        if path.suffix == ".py":
            return cast(WorkflowRead, self._post("", {**body, "code": path.read_text()}))
        with tempfile.TemporaryDirectory(prefix="trellis-") as folder:
            archive = _pack(path, Path(folder)) if path.is_dir() else path
            upload = self._api.send_file(archive)
        return cast(WorkflowRead, self._post("", {**body, "upload": upload}))

    def retry(self, workflow_id: str) -> WorkflowRead:
        """Install requirements again that could not be installed."""
        return cast(WorkflowRead, self._post(f"/{workflow_id}/retry", {}))

    def wait(self, workflow_id: str, *, timeout_s: float | None = None) -> WorkflowDetail:
        """Wait until the workflow's requirements are installed or failed; may raise ``TimeoutError``."""
        return self._wait(workflow_id, frozenset({"ready", "failed"}), timeout_s)


def _pack(folder: Path, target: Path) -> Path:
    from trellis_recipes.workflows.packing import pack

    return pack(folder, target / f"{folder.resolve().name}.tar.gz")


class Environments(Resource[EnvironmentRead, EnvironmentRead]):
    """What agents act in."""

    path = "/environments"

    def make(self, kind: str, *, name: str | None = None, **parameters: Any) -> EnvironmentRead:
        """Have one made; ``wait`` for it to be ready."""
        body = {"name": name or kind, "kind": kind, "parameters": parameters}
        return cast(EnvironmentRead, self._post("", body))

    def wait(self, environment_id: str, *, timeout_s: float | None = None) -> EnvironmentRead:
        """Wait until the environment is ready or has failed; may raise ``TimeoutError``."""
        return self._wait(environment_id, frozenset({"ready", "failed"}), timeout_s)
