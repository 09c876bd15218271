"""Raises, updates and clears the alarms of a job: from its metrics as they arrive, and from silence.

All functions take part in the caller's transaction; the caller holds the job's lock. An alarm
is said, never acted on: the run goes on.
"""

from collections.abc import Sequence

from sqlmodel import Session
from trellis_contracts.events import LogEvent
from trellis_contracts.states import JobState

from trellis_api.core.columns import utc_now
from trellis_api.jobs.alarms import platforms, repository, stall
from trellis_api.jobs.alarms.detector import Change, StepMetrics, observe
from trellis_api.jobs.alarms.examples import PROBE_EARNS, find_example, trick_of
from trellis_api.jobs.alarms.models import Alarm
from trellis_api.jobs.alarms.placement import NOT_PLACED, Shortage
from trellis_api.jobs.alarms.platforms import OTHER_PLATFORM
from trellis_api.jobs.alarms.presentation import present_alarm
from trellis_api.jobs.alarms.rules import SEVERITIES
from trellis_api.jobs.alarms.watch import Watch
from trellis_api.jobs.events import service as events
from trellis_api.jobs.logs import store as log_store
from trellis_api.jobs.models import Attempt, Job

STALLED = "stalled"


def watch_metrics(
    session: Session,
    *,
    job: Job,
    attempt: Attempt,
    metrics: Sequence[StepMetrics],
    times: Sequence[tuple[int, float]],
) -> None:
    """Pass the metrics of a batch through the rules; ``times`` say by the run's clock when each step came."""
    if not metrics:
        return
    watch = _load(session, job=job, attempt=attempt)
    changes = observe(watch, metrics)
    has_new_step = watch.note_times(times, now=utc_now().timestamp())
    if watch.is_stalled and has_new_step:
        watch.is_stalled = False
        newest = watch.steps[-1][0]
        changes.append(Change("cleared", STALLED, None, newest, newest, None, None))
    attempt.watch = watch.model_dump()
    session.add(attempt)
    _record(session, job=job, attempt=attempt.number, changes=changes)


def check_stalled(session: Session, *, job: Job, attempt: Attempt) -> bool:
    """Raise the alarm of a run that lives and stands still. Whether anything changed."""
    watch = None if attempt.watch is None else Watch.model_validate(attempt.watch)
    started = attempt.started_at
    if job.state != JobState.RUNNING or started is None or (watch is not None and watch.is_stalled):
        return False
    now = utc_now().timestamp()
    waited = stall.waited_s(watch, started_at=started.timestamp(), now=now)
    allowed = stall.allow_s(watch, job.phase)
    if waited <= allowed:
        return False
    watch = _load(session, job=job, attempt=attempt)
    watch.is_stalled = True
    attempt.watch = watch.model_dump()
    session.add(attempt)
    step = watch.last_step if watch.last_step is not None else job.step
    change = Change("raised", STALLED, None, step, step, waited, allowed)
    _record(session, job=job, attempt=attempt.number, changes=[change])
    return True


def is_stalled_now(job: Job, attempt: Attempt) -> bool:
    """Tell whether ``check_stalled`` would raise its alarm; checked without the job's lock."""
    if job.state != JobState.RUNNING or attempt.started_at is None:
        return False
    watch = None if attempt.watch is None else Watch.model_validate(attempt.watch)
    if watch is not None and watch.is_stalled:
        return False
    waited = stall.waited_s(watch, started_at=attempt.started_at.timestamp(), now=utc_now().timestamp())
    return waited > stall.allow_s(watch, job.phase)


def note_shortage(session: Session, *, job: Job, shortage: Shortage | None) -> bool:
    """Raise the alarm of a job that Ray cannot place, or clear it; whether anything changed.

    What is missing stands in the job's log as well, with what each node has.
    """
    row = repository.find_alarm(session, job_id=job.id, attempt=job.attempt, code=NOT_PLACED)
    if shortage is None:
        return _clear(session, job=job, alarm=row)
    seen = (shortage.resource, shortage.free, shortage.needed)
    if row is not None and row.is_active and (row.metric, row.value, row.threshold) == seen:
        return False
    change = Change("raised", NOT_PLACED, seen[0], job.step, job.step, seen[1], seen[2])
    _record(session, job=job, attempt=job.attempt, changes=[change])
    _log(session, job=job, message=shortage.message)
    return True


def note_other_platform(session: Session, *, job: Job, composed_for: str | None, present: str) -> bool:
    """Raise the alarm of a queued job that was composed for another platform, or clear it (None).

    Returns whether anything changed. Why the job waits stands in its log as well.
    """
    row = repository.find_alarm(session, job_id=job.id, attempt=job.attempt, code=OTHER_PLATFORM)
    if composed_for is None:
        return _clear(session, job=job, alarm=row)
    if row is not None and row.is_active and row.metric == composed_for:
        return False
    change = Change("raised", OTHER_PLATFORM, composed_for, job.step, job.step, None, None)
    _record(session, job=job, attempt=job.attempt, changes=[change])
    _log(session, job=job, message=platforms.describe(composed_for, present))
    return True


def end_attempt(session: Session, *, job: Job) -> None:
    """Clear the alarms about stalling and waiting, as the run is over.

    Alarms about metrics stay as they were.
    """
    for code in (STALLED, NOT_PLACED, OTHER_PLATFORM):
        alarm = repository.find_alarm(session, job_id=job.id, attempt=job.attempt, code=code)
        _clear(session, job=job, alarm=alarm)


def _log(session: Session, *, job: Job, message: str) -> None:
    event = LogEvent(time=utc_now(), stream="platform", lines=[message])
    first, count = log_store.write(session, job=job, attempt=job.attempt, event=event)
    events.publish_all(session, job=job, events=[("logs", {"first": first, "count": count})])


def _clear(session: Session, *, job: Job, alarm: Alarm | None) -> bool:
    if alarm is None or not alarm.is_active:
        return False
    change = Change(
        "cleared", alarm.code, alarm.metric, alarm.last_step, alarm.first_step, alarm.value, alarm.threshold
    )
    _record(session, job=job, attempt=job.attempt, changes=[change])
    return True


def replace_attempt(session: Session, *, job_id: str) -> None:
    """Clear a job's alarms for its new attempt, which is checked from the start."""
    repository.clear_all(session, job_id=job_id)


def _load(session: Session, *, job: Job, attempt: Attempt) -> Watch:
    """Load the watch state so far. That of a resumed run begins with what was known where it continues."""
    if attempt.watch is not None:
        return Watch.model_validate(attempt.watch)
    if job.resume_step is None or attempt.number == 1:
        return Watch()
    for earlier in repository.list_earlier_attempts(session, job_id=job.id, number=attempt.number):
        watch = Watch() if earlier.watch is None else Watch.model_validate(earlier.watch)
        if watch.latest:  # one that ended before its first metrics has nothing to hand on
            watch.forget_behind(job.resume_step)
            return watch
    return Watch()


def _record(session: Session, *, job: Job, attempt: int, changes: Sequence[Change]) -> None:
    if not changes:
        return
    rows = repository.map_alarms(session, job_id=job.id, attempt=attempt)
    published = []
    for change in changes:
        row = rows.get(change.code)
        if row is None:
            row = rows[change.code] = _open(job.id, attempt, change)
        _apply(row, change)
        if change.kind == "raised":
            _show_example(session, job.id, row, [each for each in changes if _is_with(each, change)])
        session.add(row)
        if change.kind != "seen":
            published.append(("alarm", present_alarm(row)))
    session.flush()
    events.publish_all(session, job=job, events=published)


def _open(job_id: str, attempt: int, change: Change) -> Alarm:
    return Alarm(
        job_id=job_id,
        attempt=attempt,
        code=change.code,
        severity=SEVERITIES[change.code],
        step=change.step,
        first_step=change.first_step,
        last_step=change.step,
    )


def _apply(row: Alarm, change: Change) -> None:
    if change.kind == "cleared":
        row.is_active, row.cleared_at = False, utc_now()
        return
    if change.kind == "raised":
        row.step, row.raised_at, row.cleared_at = change.step, utc_now(), None
    row.is_active = True
    row.last_step = max(row.last_step, change.step)
    # The other tricks that earn must not rename the one that is shown.
    if change.kind == "raised" or change.code != PROBE_EARNS or row.metric in (None, change.metric):
        _note_value(row, change)


def _note_value(row: Alarm, change: Change) -> None:
    row.metric, row.value, row.threshold = change.metric, change.value, change.threshold


def _is_with(change: Change, raised: Change) -> bool:
    """Tell whether a change is of the same alarm and step as the one that raised it."""
    return (change.code, change.step) == (raised.code, raised.step) and change.kind != "cleared"


def _show_example(session: Session, job_id: str, row: Alarm, changes: Sequence[Change]) -> None:
    """Note the response that shows best what was raised; ``changes`` are those of its step."""
    metrics = [change.metric for change in changes]
    example = find_example(session, job_id=job_id, code=row.code, metrics=metrics, step=row.step)
    row.example_id = None if example is None else example.id
    if example is not None and row.code == PROBE_EARNS:
        # Several tricks may earn at once; the rules name them in the order of the alphabet.
        for change in changes:
            if change.metric is not None and trick_of(change.metric) == example.group:
                _note_value(row, change)
