"""Reads what a job's machines and steps did over time."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlmodel import Session
from trellis_contracts.tasks import SAMPLE_INTERVAL_S

from trellis_api.core.columns import utc_now
from trellis_api.jobs import repository
from trellis_api.jobs import service as jobs
from trellis_api.jobs.models import Attempt
from trellis_api.jobs.timing import phases, store
from trellis_api.jobs.timing.models import StepTime
from trellis_api.jobs.timing.schemas import (
    AttemptSpan,
    Bottleneck,
    JobSystemRead,
    PhaseColumn,
    StepTimes,
    TimelineRead,
    TimingRead,
)
from trellis_api.monitoring import history

#: Before and after a run, so that a short one has samples as well.
_MARGIN = timedelta(seconds=SAMPLE_INTERVAL_S)
#: What of a step no timer of the trainer covers.
_REST = "rest"
_MEDIAN, _LONGEST = "response_time_s/median", "response_time_s/max"
_TAIL = "response_time_s/tail_fraction"
_QUEUED, _CACHE = "rollout_engine/queued_fraction", "rollout_engine/kv_cache_use/max"
_WORKERS, _ENGINES = "process_busy/workers", "process_busy/engines"
_MEASURED = (_MEDIAN, _LONGEST, _TAIL, _QUEUED, _CACHE, _WORKERS, _ENGINES)


def read_system(
    session: Session,
    *,
    job_id: str,
    since: datetime | None,
    until: datetime | None,
    max_points: int,
    node: str | None,
) -> JobSystemRead:
    """Read the nodes' measurements from the first attempt's start to the end or now, or part of that."""
    jobs.get_job(session, job_id=job_id)
    attempts = repository.list_attempts(session, job_id=job_id)
    times = store.list_times(session, job_id=job_id, at_most=max_points)
    begun = [each.started_at for each in attempts if each.started_at is not None]
    shown = JobSystemRead(
        since=None,
        until=None,
        stretch_s=None,
        nodes=[],
        attempts=_describe_attempts(attempts, times),
        step_times=_describe_times(times),
    )
    if not begun:
        return shown
    last = attempts[-1].finished_at
    found = history.read_history(
        session,
        since=since or min(begun) - _MARGIN,
        until=until or (utc_now() if last is None else last + _MARGIN),
        max_points=max_points,
        node=node,
    )
    shown.since, shown.until, shown.stretch_s = found.since, found.until, found.stretch_s
    shown.nodes = found.nodes
    return shown


def _describe_attempts(attempts: Sequence[Attempt], times: Sequence[StepTime]) -> list[AttemptSpan]:
    first: dict[int, int] = {}
    for each in times:
        first.setdefault(each.attempt, each.step)
    return [
        AttemptSpan(
            number=each.number,
            started_at=each.started_at,
            finished_at=each.finished_at,
            first_step=first.get(each.number),
        )
        for each in attempts
    ]


def _describe_times(times: Sequence[StepTime]) -> StepTimes:
    return StepTimes(
        steps=[each.step for each in times],
        at=[each.at for each in times],
        attempts=[each.attempt for each in times],
    )


def read_timing(session: Session, *, job_id: str, max_stretches: int) -> TimingRead:
    """Read the phases of a job's steps over the run, and the largest group of them."""
    jobs.get_job(session, job_id=job_id)
    sums = phases.add_up(session, job_id=job_id, max_stretches=max_stretches)
    steps = sum(sums.counts.values())
    columns = _describe_phases(sums) if steps else []
    whole = sums.seconds.get(phases.STEP, {})
    starts = [sums.first + place * sums.width for place in sums.stretches]
    return TimingRead(
        first_steps=starts,
        last_steps=[start + sums.width - 1 for start in starts],
        phases=columns,
        step_s=[round(whole[place] / sums.counts[place], 6) for place in sums.stretches],
        steps=steps,
        bottleneck=_find_bottleneck(session, job_id=job_id, columns=columns, steps=steps),
        timeline_steps=list(store.list_timeline_steps(session, job_id=job_id)),
    )


def _describe_phases(sums: phases.Sums) -> list[PhaseColumn]:
    names = phases.order([name for name in sums.seconds if name != phases.STEP])
    inside = [name for name in names if phases.is_in_step(name, names)]
    whole = sums.seconds[phases.STEP]
    found = {name: sums.seconds[name] for name in names}
    covered = {place: sum(found[name].get(place, 0.0) for name in inside) for place in sums.stretches}
    # Timers of a step that overlap leave nothing.
    rest = {place: max(0.0, whole[place] - covered[place]) for place in sums.stretches}
    total = sum(whole.values()) + sum(sum(found[name].values()) for name in names if name not in inside)
    if sum(rest.values()) > 0.001 * total:
        found[_REST] = rest
    return [
        PhaseColumn(
            phase=name,
            group=phases.group_of(name),
            in_step=name in inside or name == _REST,
            seconds=[round(found[name].get(place, 0.0) / sums.counts[place], 6) for place in sums.stretches],
            total_s=sum(found[name].values()),
            share=sum(found[name].values()) / total if total else 0.0,
        )
        for name in found
    ]


def _find_bottleneck(
    session: Session, *, job_id: str, columns: Sequence[PhaseColumn], steps: int
) -> Bottleneck | None:
    """Return the group of phases with the largest share of the measured time."""
    if not columns:
        return None
    groups: dict[str, list[PhaseColumn]] = {}
    for column in columns:
        groups.setdefault(column.group, []).append(column)
    name, own = max(groups.items(), key=lambda item: sum(each.total_s for each in item[1]))
    means = phases.read_means(session, job_id=job_id, keys=_MEASURED)
    median = means.get(_MEDIAN)
    return Bottleneck(
        group=name,
        share=sum(each.share for each in own),
        seconds=sum(each.total_s for each in own) / steps,
        steps=steps,
        phases=[each.phase for each in sorted(own, key=lambda each: -each.total_s)],
        longest_response=means[_LONGEST] / median if median and _LONGEST in means else None,
        tail_share=means.get(_TAIL),
        queued_share=means.get(_QUEUED),
        kv_cache_use=means.get(_CACHE),
        workers_busy=means.get(_WORKERS),
        engines_busy=means.get(_ENGINES),
    )


def read_timeline(session: Session, *, job_id: str, step: int | None) -> TimelineRead | None:
    """Read the spans of the kept step that is nearest to ``step``, or of the newest one."""
    jobs.get_job(session, job_id=job_id)
    row = store.find_timeline(session, job_id=job_id, step=step)
    if row is None:
        return None
    found = TimelineRead.model_validate({**row.timeline, "attempt": row.attempt})
    spans = [span for lane in found.lanes for span in lane.spans]
    spans += [part for response in found.responses for part in response.parts]
    found.groups = {phase: phases.group_of(phase) for phase in phases.order({span.phase for span in spans})}
    # What runs told before there was a count is complete.
    found.lane_count = max(found.lane_count, len(found.lanes))
    return found
