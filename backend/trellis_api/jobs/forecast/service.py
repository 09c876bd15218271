"""What a launch will take, told before it: time, the queue, and the disk.

Time is that of measured runs that were alike; without any, that of runs of the nearest model, scaled by its
parameters; without those, on a CPU, the operations of a step at the speed that this machine multiplies
matrices. The answer says which, and is null where none of them applies.
"""

import heapq
import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, col, select
from trellis_contracts.states import JobState
from trellis_recipes.compose import ComposeRequest, Composition
from trellis_recipes.memory.settings import IncompleteConfiguration

from trellis_api.core.pricing import SlotPrice
from trellis_api.core.settings import Settings
from trellis_api.datasets.models import Dataset
from trellis_api.endpoints import preemption
from trellis_api.endpoints.preemption import Outlook
from trellis_api.jobs import repository
from trellis_api.jobs.forecast.arithmetic import count_step_flops
from trellis_api.jobs.forecast.disk import count_run_steps, estimate_use
from trellis_api.jobs.forecast.schemas import DiskForecast, RunForecast, StartForecast, TimeForecast
from trellis_api.jobs.forecast.work import rows_of_a_step, work_of_a_step
from trellis_api.jobs.models import TRAIN, Job
from trellis_api.jobs.presentation import estimate_eta_s
from trellis_api.jobs.resolved_params import map_resolved
from trellis_api.models.models import Model
from trellis_api.monitoring.speed import measure_flops

#: Newest measured runs that are looked at, and how many of them speak.
_LOOKED_AT, _MOST_SAMPLES = 200, 20
#: Two steps are not a speed yet: the first one compiles and loads.
_MIN_STEPS = 2
#: Models of up to this times fewer or more parameters count as alike.
_SIZE_FACTOR = 1.5
#: From runs of a model up to this times larger or smaller, times are scaled where there are no others.
_MAX_SCALE = 16
#: Times that a step takes as long as its operations alone: at best, as a rule, and at worst. SFT and GRPO of
#: a model with 135 M parameters took one to one and a half times as long (docs/performance.md).
_AT_BEST, _AS_A_RULE, _AT_WORST = 1.0, 1.5, 3.0


@dataclass(frozen=True)
class Measured:
    """A run that was alike: what a step and the start took, and how much work a step was."""

    job_id: str
    step_s: float
    start_s: float
    #: As `work_of_a_step` counts it.
    work: int
    is_same_data: bool


def forecast(
    session: Session,
    settings: Settings,
    *,
    job: Job,
    model: Model,
    composition: Composition,
    request: ComposeRequest,
) -> RunForecast:
    """Forecast time, start and disk usage of a composed run."""
    steps = count_run_steps(composition, request)
    return RunForecast(
        steps=steps,
        time=_tell_time(
            session,
            settings,
            job=job,
            model=model,
            request=request,
            composition=composition,
            steps=steps,
        ),
        start=_tell_start(session, settings, job=job),
        disk=_tell_disk(composition, request),
    )


def list_alike(session: Session, *, job: Job, model: Model) -> list[Measured]:
    """List the newest runs of the recipe on as many slots with a model this size; on the same data if any."""
    runs = _list_runs(session, job)
    return _measure_all(
        session, job, [other for other, size in runs if _is_size_alike(model, other.model_id, size)]
    )


def list_nearest(session: Session, *, job: Job, parameters: int) -> tuple[list[Measured], int]:
    """List the runs of the recipe whose model comes nearest in size, and that model's parameters."""
    scales = {
        other.id: (abs(math.log(size / parameters)), size, other)
        for other, size in _list_runs(session, job)
        if size and 1 / _MAX_SCALE <= size / parameters <= _MAX_SCALE
    }
    if not scales:
        return [], parameters
    _, nearest, _ = min(scales.values(), key=lambda each: each[0])
    runs = [other for _, size, other in scales.values() if size == nearest]
    return _measure_all(session, job, runs), nearest


def _list_runs(session: Session, job: Job) -> list[tuple[Job, int | None]]:
    """List the newest measured runs of the recipe on as many slots, and the parameters of their models."""
    statement = (
        select(Job, Model.parameter_count)
        .join(Model, col(Model.id) == Job.model_id)
        .where(
            Job.kind == TRAIN,
            Job.recipe == job.recipe,
            Job.gpus == job.gpus,
            Job.id != job.id,
            col(Job.first_step_at).is_not(None),
            col(Job.last_step_at).is_not(None),
        )
        .order_by(col(Job.created_at).desc())
        .limit(_LOOKED_AT)
    )
    return [(other, size) for other, size in session.exec(statement) if _is_measured(other)]


def _measure_all(session: Session, job: Job, runs: Sequence[Job]) -> list[Measured]:
    resolved = map_resolved(session, jobs=runs)
    alike = [_measure(other, job, params) for other in runs if (params := resolved[other.id]) is not None]
    same = [each for each in alike if each.is_same_data]
    return (same or alike)[:_MOST_SAMPLES]


def _is_size_alike(model: Model, model_id: str, parameters: int | None) -> bool:
    if model_id == model.id:
        return True
    if not parameters or not model.parameter_count:
        return False
    return 1 / _SIZE_FACTOR <= parameters / model.parameter_count <= _SIZE_FACTOR


def _count_measured(job: Job) -> tuple[int, float]:
    """Count the steps of a run's newest attempt after its first one, and the seconds that they took."""
    if job.first_step is None or job.first_step_at is None or job.last_step_at is None:
        return 0, 0.0
    return job.step - job.first_step, (job.last_step_at - job.first_step_at).total_seconds()


def _is_measured(job: Job) -> bool:
    steps, seconds = _count_measured(job)
    return steps >= _MIN_STEPS and seconds > 0


def _measure(other: Job, job: Job, params: Mapping[str, object]) -> Measured:
    steps, seconds = _count_measured(other)
    begun, first = other.launched_at, other.first_step_at
    start_s = 0.0 if begun is None or first is None else (first - begun).total_seconds()
    return Measured(
        job_id=other.id,
        step_s=seconds / steps,
        start_s=max(0.0, start_s),
        work=work_of_a_step(params),
        is_same_data=other.dataset_id == job.dataset_id,
    )


def _tell_time(
    session: Session,
    settings: Settings,
    *,
    job: Job,
    model: Model,
    request: ComposeRequest,
    composition: Composition,
    steps: int | None,
) -> TimeForecast | None:
    if not steps:
        return None
    told = _Told(steps, composition.params, job.gpus, settings.slot_price)
    if measured := list_alike(session, job=job, model=model):
        return told.of_runs(measured)
    parameters = request.parameters
    if parameters is not None:
        measured, other = list_nearest(session, job=job, parameters=parameters)
        if measured:
            return told.of_runs(measured, parameters=parameters, scaled_from=other)
    if settings.resolved_platform != "cpu":
        return None
    flops = count_step_flops(composition, request, row_bytes=_find_row_bytes(session, job))
    return None if flops is None else told.of_flops(flops, share=job.gpus / settings.total_slots)


def _find_row_bytes(session: Session, job: Job) -> float | None:
    """Return the mean size of the dataset's rows as JSON."""
    dataset = session.get(Dataset, job.dataset_id)
    return dataset.size_bytes / dataset.row_count if dataset is not None and dataset.row_count else None


@dataclass(frozen=True)
class _Told:
    """What the time of a run is told from, whatever that is based on."""

    steps: int
    params: Mapping[str, object]
    gpus: int
    price: SlotPrice | None

    def of_runs(
        self, measured: Sequence[Measured], *, parameters: int = 1, scaled_from: int | None = None
    ) -> TimeForecast:
        """Tell it from runs; of another model's, some of the time grows with its size, and some does not."""
        work = work_of_a_step(self.params)
        scale = 1.0 if scaled_from is None else parameters / scaled_from
        plain = [each.step_s * work / each.work for each in measured]
        return self._tell(
            basis="similar_runs" if scaled_from is None else "scaled_runs",
            start_s=statistics.median(each.start_s for each in measured),
            step_s=statistics.median(plain) * scale,
            low_s=min(plain) * min(1.0, scale),
            high_s=max(plain) * max(1.0, scale),
            runs=[each.job_id for each in measured],
            is_same_data=all(each.is_same_data for each in measured),
            scaled_from_parameters=scaled_from,
        )

    def of_flops(self, flops: float, *, share: float) -> TimeForecast:
        """Tell it from the operations of a step, at the share of this machine that the job gets."""
        speed = measure_flops() * share
        least = flops / speed
        return self._tell(
            basis="arithmetic",
            start_s=0.0,
            step_s=least * _AS_A_RULE,
            low_s=least * _AT_BEST,
            high_s=least * _AT_WORST,
            runs=[],
            is_same_data=False,
            step_flops=flops,
            machine_flops=speed,
        )

    def _tell(
        self, *, start_s: float, step_s: float, low_s: float, high_s: float, **basis: Any
    ) -> TimeForecast:
        seconds = start_s + self.steps * step_s
        return TimeForecast(
            seconds=round(seconds, 1),
            low_s=round(start_s + self.steps * low_s, 1),
            high_s=round(start_s + self.steps * high_s, 1),
            step_s=round(step_s, 4),
            rows_per_s=round(rows_of_a_step(self.params) / step_s, 2),
            slot_hours=round(seconds * self.gpus / 3600, 4),
            cost=None if self.price is None else self.price.of(seconds * self.gpus),
            **basis,
        )


def _tell_start(session: Session, settings: Settings, *, job: Job) -> StartForecast:
    """Let the running jobs end at their ETA and the queue follow; null where one of them cannot be told."""
    ahead = [each for each in _list_waiting(session, settings) if each.priority >= job.priority]
    return _follow_queue(session, settings, waiting=[*ahead, job])[-1]


def list_starts(session: Session, settings: Settings, *, queued: Sequence[Job]) -> dict[str, StartForecast]:
    """Map the id of each queued training to its start; other jobs hold no slot that it waits for."""
    waiting = [each for each in queued if each.gpus and each.kind == TRAIN]
    starts = _follow_queue(session, settings, waiting=waiting)
    return {each.id: start for each, start in zip(waiting, starts, strict=True)}


def _list_waiting(session: Session, settings: Settings) -> list[Job]:
    others = repository.map_queued_for_other_platform(session, platform=settings.resolved_platform)
    return [
        each
        for each in repository.list_queued(session)
        if each.gpus and each.kind == TRAIN and each.id not in others
    ]


def _follow_queue(session: Session, settings: Settings, *, waiting: Sequence[Job]) -> list[StartForecast]:
    """Forecast the starts of waiting jobs: each gets slots as those before it end, without overtaking."""
    running = [each for each in repository.list_holding_slots(session) if each.gpus]
    free = settings.total_slots - sum(each.gpus for each in running)
    leaving = _list_leaving(session, settings, priority=max((each.priority for each in waiting), default=0))
    ends = [(0.0 if each.id in leaving else _left_s(each), each.gpus, each.name) for each in running]
    heapq.heapify(ends)
    now = 0.0
    known: _Known = {}
    params = map_resolved(session, jobs=waiting)
    starts: list[StartForecast] = []
    for ahead, job in enumerate(waiting):
        while free < job.gpus and ends and ends[0][0] < math.inf:
            now, given, _ = heapq.heappop(ends)
            free += given
        if free < job.gpus:
            unknown = ends[0][2] if ends else None
            rest = range(ahead, len(waiting))
            return [*starts, *(StartForecast(seconds=None, jobs_ahead=n, unknown=unknown) for n in rest)]
        starts.append(StartForecast(seconds=round(now, 1), jobs_ahead=ahead))
        if job is waiting[-1]:
            break
        length = _length_s(session, job, params[job.id], known)
        free -= job.gpus
        heapq.heappush(ends, (math.inf if length is None else now + length, job.gpus, job.name))
    return starts


def _list_leaving(session: Session, settings: Settings, *, priority: int) -> set[str]:
    """List the jobs of endpoints that stop as soon as a training of this priority needs their slots."""
    return {
        each.job.id
        for each in preemption.list_slot_holders(session)
        if each.outlook(settings.endpoint_preemption, priority=priority) is Outlook.PREEMPTIBLE
    }


def _left_s(job: Job) -> float:
    """Return the seconds until a job that holds slots ends; infinite without an ETA."""
    eta = 0.0 if job.state == JobState.STOPPING else estimate_eta_s(job)
    return math.inf if eta is None else eta


#: Runs that were alike, by recipe, model, slots and data: a queue often holds many jobs of one kind.
_Known = dict[tuple[str, str, int, str | None], list[Measured]]


def _length_s(session: Session, job: Job, params: Mapping[str, object] | None, known: _Known) -> float | None:
    """Estimate a queued job's duration: its remaining steps at the speed of similar runs."""
    model = session.get(Model, job.model_id)
    if model is None or params is None:
        return None
    steps = job.total_steps or params.get("total_steps")
    if not isinstance(steps, int) or not steps:
        return None
    kind = (job.recipe, job.model_id, job.gpus, job.dataset_id)
    if kind not in known:
        known[kind] = list_alike(session, job=job, model=model)
    measured = known[kind]
    if not measured:
        return None
    start_s = statistics.median(each.start_s for each in measured)
    step_s = statistics.median(each.step_s / each.work for each in measured) * work_of_a_step(params)
    return start_s + max(0, steps - job.step) * step_s


def _tell_disk(composition: Composition, request: ComposeRequest) -> DiskForecast | None:
    if composition.errors or not composition.config or request.architecture is None:
        return None
    try:
        use = estimate_use(composition, request, request.architecture)
    except IncompleteConfiguration:
        return None
    total = None if use.checkpoints is None else use.checkpoints * use.checkpoint_bytes
    return DiskForecast(checkpoint_bytes=use.checkpoint_bytes, checkpoints=use.checkpoints, total_bytes=total)
