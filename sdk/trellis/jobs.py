"""``client.jobs``: trainings, and all that they report."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

from trellis_contracts.states import FINISHED

from trellis.resource import Resource
from trellis.transport import given
from trellis.types import (
    CheckpointRead,
    ComparedCurves,
    ComparedEvaluations,
    ComparedSeeds,
    JobComparison,
    JobPreview,
    JobRead,
    LogLineRead,
    ManifestRead,
    MetricKey,
    MetricsRead,
    PromptMap,
    ReplayPlan,
    RolloutRead,
    RolloutStep,
    RolloutSummary,
    TimingRead,
    TracedStep,
)

#: ``probe``: tricks made of the policy's best responses; ``group`` is the trick.
Split = Literal["train", "validation", "probe"]
#: The most points of a curve that one answer has.
_MAX_POINTS = 20_000
_LOG_PAGE = 5000


@dataclass(frozen=True)
class JobEvent:
    """Something that a job reported just now; ``data`` as in ``StreamEvents`` of ``trellis.types``."""

    kind: str
    #: Give as ``after`` to go on behind it.
    id: str
    data: Any


class Jobs(Resource[JobRead, JobRead]):
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
    ) -> JobRead:
        """Queue a job; ``more`` as in ``POST /jobs`` (validation_dataset, seed, priority, tags ...)."""
        body = _request(recipe, model, dataset, name, preset, params, overrides, more)
        return cast(JobRead, self._post("", body))

    def preview(
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
    ) -> JobPreview:
        """Return what ``submit`` would run, and every problem with it."""
        body = _request(recipe, model, dataset, name, preset, params, overrides, more)
        return cast(JobPreview, self._post("/preview", body))

    def clone(self, job_id: str) -> JobRead:
        """Create a job with the same settings as this one."""
        return cast(JobRead, self._post(f"/{job_id}/clone"))

    def edit(self, job_id: str, **changes: Any) -> JobRead:
        """Change its ``name``, ``notes``, ``is_starred``, ``tags`` (or ``add_tags`` ...) or ``priority``."""
        return cast(JobRead, self._api.request("PATCH", f"{self.path}/{job_id}", json=changes))

    def wait(self, job_id: str, *, timeout_s: float | None = None) -> JobRead:
        """Wait until the job has ended, in whatever state; may raise ``TimeoutError``."""
        return self._wait(job_id, FINISHED, timeout_s)

    def resume(self, job_id: str, *, step: int | None = None) -> JobRead:
        """Let it go on from its newest checkpoint, or from that of ``step``."""
        return cast(JobRead, self._post(f"/{job_id}/resume", given(checkpoint_step=step)))

    def stop(self, job_id: str) -> JobRead:
        """Let it leave at a checkpoint."""
        return cast(JobRead, self._post(f"/{job_id}/stop"))

    # -- what it reports -------------------------------------------------------------------

    def metric_keys(self, job_id: str) -> list[MetricKey]:
        """List the metrics that the job has reported, with the newest value of each."""
        return cast("list[MetricKey]", self._api.request("GET", f"{self.path}/{job_id}/metric-keys"))

    def metrics(self, job_id: str, keys: Sequence[str] | None = None) -> dict[str, dict[int, float | None]]:
        """Return complete curves by key: step → value, None if not finite. Without keys, all of them."""
        names = [each["key"] for each in self.metric_keys(job_id)] if keys is None else list(keys)
        return {name: self._read_curve(job_id, name) for name in names}

    def thinned_metrics(
        self, job_id: str, keys: Sequence[str] | None = None, *, max_points: int = 1000
    ) -> MetricsRead:
        """Return curves of at most so many points; ``is_downsampled`` tells whether a curve is incomplete."""
        params = given(keys=list(keys) if keys is not None else None, max_points=max_points)
        return cast(MetricsRead, self._api.request("GET", f"{self.path}/{job_id}/metrics", params=params))

    def _read_curve(self, job_id: str, key: str) -> dict[int, float | None]:
        """Read a curve in windows that fit into one response each: every point belongs to a step."""
        curve: dict[int, float | None] = {}
        first: int | None = 0
        while first is not None:
            window: dict[str, Any] = {"keys": key, "max_points": _MAX_POINTS, "from_step": first}
            (series,) = self._series(job_id, window)
            if series["is_downsampled"]:
                window["to_step"] = first + _MAX_POINTS - 1
                (series,) = self._series(job_id, window)
            curve |= dict(zip(series["steps"], series["values"], strict=True))
            first = window["to_step"] + 1 if "to_step" in window else None
        return curve

    def _series(self, job_id: str, params: Mapping[str, Any]) -> Any:
        answer = self._api.request("GET", f"{self.path}/{job_id}/metrics", params=params)
        return answer["series"] or [{"steps": [], "values": [], "is_downsampled": False}]

    def logs(self, job_id: str, *, after: int = 0) -> Iterator[LogLineRead]:
        """Yield every line printed so far, oldest first; ``after`` is a line's number."""
        while True:
            params = {"after": after, "limit": _LOG_PAGE}
            page = self._api.request("GET", f"{self.path}/{job_id}/logs", params=params)
            yield from page["lines"]
            if not page["lines"]:
                return
            after = page["next_after"]

    def events(self, job_id: str, *, after: str | None = None) -> Iterator[JobEvent]:
        """Yield the job's events from now on or after ``after`` until it ends: states, metrics, lines ..."""
        if after is None and self.get(job_id)["state"] in FINISHED:
            return
        for kind, identifier, data in self._api.events(f"{self.path}/{job_id}/events", after=after):
            yield JobEvent(kind, identifier, data)
            if kind == "state" and data["state"] in FINISHED:
                return

    def rollouts(
        self, job_id: str, *, step: int | None = None, split: Split | None = None, **filters: Any
    ) -> Iterator[RolloutRead]:
        """Iterate over responses of a step (default newest); filters: stop_reason, min_score, max_score."""
        return self._api.pages(f"{self.path}/{job_id}/rollouts", step=step, split=split, **filters)

    def rollout(self, job_id: str, rollout_id: int) -> RolloutRead:
        """Return one response, with its episode turn by turn."""
        return cast(RolloutRead, self._api.request("GET", f"{self.path}/{job_id}/rollouts/{rollout_id}"))

    def rollout_steps(self, job_id: str, *, split: Split | None = None) -> list[RolloutStep]:
        """List the steps whose responses are kept."""
        path = f"{self.path}/{job_id}/rollout-steps"
        return cast("list[RolloutStep]", self._api.request("GET", path, params=given(split=split)))

    def rollout_summary(
        self, job_id: str, *, step: int | None = None, split: Split | None = None
    ) -> RolloutSummary:
        """Return all scores of a step, and why its episodes ended."""
        path = f"{self.path}/{job_id}/rollout-summary"
        return cast(RolloutSummary, self._api.request("GET", path, params=given(step=step, split=split)))

    def rollout_map(
        self, job_id: str, *, split: Split | None = None, max_prompts: int | None = None
    ) -> PromptMap:
        """Return mean scores by prompt and step, and the prompts whose responses all scored the same."""
        path = f"{self.path}/{job_id}/rollout-map"
        asked = given(split=split, max_prompts=max_prompts)
        return cast(PromptMap, self._api.request("GET", path, params=asked))

    def prompt_rollouts(
        self, job_id: str, prompt_key: str, *, split: Split | None = None, to_step: int | None = None
    ) -> Iterator[RolloutRead]:
        """Iterate over responses to one prompt, newest step first; find its key in ``rollout_map``."""
        path = f"{self.path}/{job_id}/prompts/{prompt_key}/rollouts"
        return self._api.pages(path, split=split, to_step=to_step)

    def rollout_tokens(
        self, job_id: str, *, step: int | None = None, split: Split | None = None
    ) -> TracedStep:
        """Return a few responses token by token, of the step nearest to ``step`` that has such traces."""
        path = f"{self.path}/{job_id}/rollout-tokens"
        return cast(TracedStep, self._api.request("GET", path, params=given(step=step, split=split)))

    def timing(self, job_id: str, *, max_stretches: int | None = None) -> TimingRead:
        """Return where the time of the steps goes, phase by phase, and what limits the run."""
        path, params = f"{self.path}/{job_id}/timing", given(max_stretches=max_stretches)
        return cast(TimingRead, self._api.request("GET", path, params=params))

    def manifest(self, job_id: str, *, attempt: int | None = None) -> ManifestRead:
        """Return what an attempt ran with: versions, machine, configuration, data."""
        path = f"{self.path}/{job_id}/manifest"
        return cast(ManifestRead, self._api.request("GET", path, params=given(attempt=attempt)))

    def plan_replay(self, manifest: Mapping[str, Any], *, name: str | None = None) -> ReplayPlan:
        """Return what a replay of this manifest would launch here, what differs, and what prevents it."""
        body = {"manifest": dict(manifest), "name": name}
        return cast(ReplayPlan, self._api.request("POST", f"{self.path}/replay/preview", json=body))

    def replay(self, manifest: Mapping[str, Any], *, name: str | None = None) -> JobRead:
        """Queue the run of a manifest again; ``ApiError`` (``cannot_replay``) where something is missing."""
        body = {"manifest": dict(manifest), "name": name}
        return cast(JobRead, self._api.request("POST", f"{self.path}/replay", json=body))

    def compare(self, job_ids: Sequence[str], *, keys: Sequence[str] | None = None) -> JobComparison:
        """Compare settings, last and best of ``keys`` (default: headline and validation), and seed groups."""
        return cast(JobComparison, self._compare("", job_ids, keys=list(keys) if keys is not None else None))

    def compare_curves(
        self, job_ids: Sequence[str], keys: Sequence[str], *, max_points: int = 400
    ) -> ComparedCurves:
        """Compare the curves of several jobs, each of at most so many points."""
        answer = self._compare("/metrics", job_ids, keys=list(keys), max_points=max_points)
        return cast(ComparedCurves, answer)

    def compare_evaluations(
        self, job_ids: Sequence[str], *, baseline: str | None = None
    ) -> ComparedEvaluations:
        """Run paired tests on the benchmarks that a job shares with the baseline (default: the first)."""
        return cast(ComparedEvaluations, self._compare("/evaluations", job_ids, baseline=baseline))

    def compare_seeds(
        self, job_ids: Sequence[str], *, baseline: str | None = None, metric: str | None = None
    ) -> ComparedSeeds:
        """Compare groups that differ only in the seed with the baseline's: 95 % intervals by Welch's t."""
        return cast(ComparedSeeds, self._compare("/seeds", job_ids, baseline=baseline, metric=metric))

    def _compare(self, path: str, job_ids: Sequence[str], **params: Any) -> Any:
        query = given(ids=",".join(job_ids), **params)
        return self._api.request("GET", f"{self.path}/compare{path}", params=query)

    # -- checkpoints -----------------------------------------------------------------------

    def checkpoints(
        self, job_id: str, *, best_by: str | None = None, mode: Literal["max", "min"] | None = None
    ) -> Iterator[CheckpointRead]:
        """Iterate over the job's checkpoints, newest first, with the metrics of their steps."""
        return self._api.pages(f"{self.path}/{job_id}/checkpoints", best_by=best_by, mode=mode)

    def keep_checkpoint(self, job_id: str, step: int, *, is_kept: bool = True) -> CheckpointRead:
        """Pin a checkpoint, or let it go again."""
        path = f"{self.path}/{job_id}/checkpoints/{step}"
        return cast(CheckpointRead, self._api.request("PATCH", path, json={"is_kept": is_kept}))

    def prune_checkpoint(self, job_id: str, step: int) -> None:
        """Remove the files of a checkpoint."""
        self._api.request("DELETE", f"{self.path}/{job_id}/checkpoints/{step}")

    def export(
        self, job_id: str, step: int, *, name: str, form: Literal["merged", "adapter"] = "merged", **more: Any
    ) -> JobRead:
        """Make a model of a checkpoint: a job; ``wait`` for it, and ``exported_model`` is the model."""
        body = {"name": name, "form": form, **more}
        return cast(JobRead, self._post(f"/{job_id}/checkpoints/{step}/export", body))


def _request(
    recipe: str,
    model: str,
    dataset: str,
    name: str | None,
    preset: str | None,
    params: Mapping[str, Any] | None,
    overrides: Mapping[str, Any] | None,
    more: Mapping[str, Any],
) -> dict[str, Any]:
    return given(
        name=name or recipe, recipe=recipe, model=model, dataset=dataset, preset=preset,
        params=dict(params or {}), overrides=dict(overrides or {}), **more,
    )  # fmt: skip
