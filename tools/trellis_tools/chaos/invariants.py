"""What must hold whatever breaks: functions over what the API, the file system and the processes say."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from trellis_contracts.states import FINISHED, JobState

from trellis_tools.chaos.accounts import Account, Point
from trellis_tools.chaos.chats import ENDS_WITHIN_S, Chat

#: Within which a job is settled when its run is over, and the next one starts when its slot is free.
SETTLED_WITHIN_S = 60.0
STARTED_WITHIN_S = 60.0
#: A run that stands still is told from one that is slow by waiting.
FROZEN_SETTLED_WITHIN_S = 120.0
#: Within which the platform knows how an endpoint stands whose engine died while all services were up: what
#: it promises, with the campaign's own looks.
ENGINE_SETTLED_WITHIN_S = 30.0 + 1.0
#: The same after all other faults: the services learn of their runs as they come back, as for jobs, and an
#: engine that lives first ends the requests from before.
ENDPOINT_SETTLED_WITHIN_S = 60.0
#: Within which requests to it are answered again: a failed one is started by a request after a minute, and
#: then loads its model.
ENDPOINT_ANSWERS_WITHIN_S = 240.0
#: Within which pages and metrics say that nobody starts again what dies.
SUPERVISOR_MISSED_WITHIN_S = 45.0
#: Errors that say how an endpoint stands.
CLEAR_ERRORS = frozenset(
    {"endpoint_starting", "endpoint_stopped", "endpoint_failed", "engine_lost", "engine_silent"}
)
_SHOWN = 3


@dataclass(frozen=True)
class Finding:
    """One thing that should not be."""

    rule: str
    expected: str
    found: str
    #: When it went wrong, in Unix seconds; None where only the look is known that found it.
    at: float | None = None


@dataclass(frozen=True)
class Window:
    """A time in which something was broken: from the fault until everything answers again. Unix seconds."""

    begins: float
    ends: float
    #: Whether runs that lived in it may have ended badly.
    ends_runs: bool = False
    #: Whether the engine of the endpoint may have ended.
    ends_endpoint: bool = False

    def meets(self, begins: float, ends: float) -> bool:
        """Return whether something was broken between two moments."""
        return self.begins <= ends and begins <= self.ends


@dataclass(frozen=True)
class JobFacts:
    """A job as the API shows it. Times are Unix seconds."""

    id: str
    name: str
    state: str
    attempt: int
    created_at: float
    launched_at: float | None
    started_at: float | None
    finished_at: float | None
    #: What it was asked for.
    total_steps: int
    is_stop_asked: bool = False
    reason: str | None = None

    @property
    def is_over(self) -> bool:
        """Whether it is settled."""
        return self.state in FINISHED

    @property
    def ended_at(self) -> float:
        """When it was settled; before that, when it was asked for."""
        return self.finished_at or self.created_at


@dataclass(frozen=True)
class RunEnd:
    """The supervising process of a job's run was last seen alive, or froze, at this time."""

    job_id: str
    at: float
    is_frozen: bool = False


def check_jobs_are_kept(
    accepted: Mapping[str, str],
    unsure: Iterable[str],
    listed: Sequence[tuple[str, str]],
    asked_at: Mapping[str, float],
) -> list[Finding]:
    """Check that every accepted job (name to id) is listed once, and one without an answer at most once.

    ``listed`` has pairs of id and name, ``asked_at`` when each name was asked for.
    """
    rule = "no job lost or duplicated"
    findings = []
    ids, names = Counter(each for each, _ in listed), Counter(name for _, name in listed)
    for name, job_id in accepted.items():
        if ids[job_id] != 1 or names[name] != 1:
            found = f"{ids[job_id]} with this ID, {names[name]} with this name"
            findings.append(Finding(rule, f"{name} ({job_id}) once", found, asked_at.get(name)))
    findings += [
        Finding(rule, f"{name} at most once", f"{names[name]} times", asked_at.get(name))
        for name in unsure
        if names[name] > 1
    ]
    known = {*accepted, *unsure}
    findings += [
        Finding(rule, "only requested jobs", f"{name} ({job_id})")
        for job_id, name in listed
        if name not in known
    ]
    return findings


def check_begun_once(job: JobFacts, own: Account) -> list[Finding]:
    """Check that nothing is launched twice: one attempt with one run."""
    if job.attempt == 1 and own.beginnings <= 1:
        return []
    found = f"attempt {job.attempt}, {own.beginnings} runs"
    expected = f"{job.name}: one attempt with one run"
    return [Finding("no job lost or duplicated", expected, found, job.ended_at)]


def check_metrics(job: JobFacts, own: Account, kept: Account) -> list[Finding]:
    """Check that every measured point exists exactly once and that a successful job has every step."""
    rule, at = "every metric step once", job.ended_at
    doubled = (*own.faults, *kept.faults)
    findings = [Finding(rule, f"{job.name}: every point once", each, at) for each in doubled]
    if own.points != kept.points:
        findings.append(Finding(rule, f"{job.name}: {len(own.points)} points", _difference(own, kept), at))
    if job.state == JobState.SUCCEEDED:
        steps = sorted({step for key, step in kept.points if key == "train/loss"})
        if steps != list(range(1, job.total_steps + 1)):
            findings.append(Finding(rule, f"{job.name}: steps 1 to {job.total_steps}", f"steps {steps}", at))
    return findings


def _difference(own: Account, kept: Account) -> str:
    def show(points: Iterable[Point]) -> str:
        some = sorted(points, key=lambda point: (point[1], point[0]))
        return ", ".join(f"{key} at {step}" for key, step in some[:_SHOWN]) + (" ..." * (len(some) > _SHOWN))

    missing, extra = own.points.keys() - kept.points.keys(), kept.points.keys() - own.points.keys()
    changed = {
        point for point in own.points.keys() & kept.points.keys() if own.points[point] != kept.points[point]
    }
    parts = [("missing", missing), ("never reported", extra), ("wrong value", changed)]
    return "; ".join(f"{len(points)} {what}: {show(points)}" for what, points in parts if points)


def check_lines(job: JobFacts, own: Account, kept: Account) -> list[Finding]:
    """Check that no line of output is lost or repeated."""
    wanted, found = Counter(own.lines), Counter(kept.lines)
    if wanted == found:
        return []
    lost, extra = list((wanted - found).elements()), list((found - wanted).elements())
    shown = [
        f"{len(lines)} {what}: {lines[:_SHOWN]}"
        for what, lines in (("lost", lost), ("extra", extra))
        if lines
    ]
    expected = f"{job.name}: {len(own.lines)} lines"
    return [Finding("no log line lost", expected, "; ".join(shown), job.ended_at)]


def check_outcome(job: JobFacts, windows: Sequence[Window]) -> list[Finding]:
    """Check that only a run that was hit by a fault ends badly."""
    if not job.is_over or job.state == JobState.SUCCEEDED:
        return []
    if job.state == JobState.STOPPED and job.is_stop_asked:
        return []
    begins, ends = job.launched_at or job.created_at, job.finished_at or job.created_at
    if any(window.ends_runs and window.begins <= ends and begins <= window.ends for window in windows):
        return []
    expected = f"{job.name} succeeds, since no fault hit its run"
    return [Finding("no job lost or duplicated", expected, f"{job.state}: {job.reason}", job.ended_at)]


def check_settled(job: JobFacts, end: RunEnd, windows: Sequence[Window], now: float) -> list[Finding]:
    """Check that a job settles in time after its run ends, not counting time the platform was broken."""
    bound_s = FROZEN_SETTLED_WITHIN_S if end.is_frozen else SETTLED_WITHIN_S
    waited_s = undisturbed(end.at, job.finished_at if job.is_over and job.finished_at else now, windows)
    if waited_s <= bound_s:
        return []
    state = "settled" if job.is_over else f"still {job.state}"
    return [
        Finding(
            "settled in time",
            f"{job.name} settled within {bound_s:.0f} s",
            f"{state} after {waited_s:.0f} s",
            end.at,
        )
    ]


def check_starts(jobs: Sequence[JobFacts], windows: Sequence[Window], now: float) -> list[Finding]:
    """Check, on one slot, that each job runs soon after it was requested and the one before had ended."""
    findings = []
    free_since: float | None = 0.0
    for job in sorted(jobs, key=lambda each: (each.launched_at or now, each.created_at)):
        moment = job.started_at or (job.finished_at if job.is_over else None)
        if free_since is not None:
            since = max(job.created_at, free_since)
            waited_s = undisturbed(since, moment or now, windows)
            if waited_s > STARTED_WITHIN_S:
                state = "started" if moment else f"still {job.state}"
                expected = f"{job.name} starts within {STARTED_WITHIN_S:.0f} s of a free slot"
                findings.append(Finding("next job runs", expected, f"{state} after {waited_s:.0f} s", since))
        if job.launched_at is not None or not job.is_over:  # one that was stopped in the queue held no slot
            free_since = job.finished_at if job.is_over else None
    return findings


def check_slots(used: int, jobs: Sequence[JobFacts]) -> list[Finding]:
    """Check that slots are held only by jobs that are running."""
    holding = [job.name for job in jobs if not job.is_over and job.state != JobState.QUEUED]
    if used == len(holding):
        return []
    return [Finding("nothing left behind", f"slots of {holding or 'no job'}", f"{used} slots used")]


def check_answers(answers: Iterable[tuple[float, str, int]], windows: Sequence[Window]) -> list[Finding]:
    """Check that no request fails inside the API, and none is refused while the platform is intact.

    ``answers`` has time, request and status.
    """
    findings = []
    for at, request, status in answers:
        is_broken = any(window.begins <= at <= window.ends for window in windows)
        if status == 500 or (status > 500 and not is_broken):
            expected = "no 500, and no 5xx while all services are up"
            findings.append(Finding("the API answers", expected, f"{request}: {status}", at))
    return findings


def check_stream(job_id: str, after: int, numbers: Sequence[int], came_at: Sequence[float]) -> list[Finding]:
    """Check that a viewer that reconnects gets every event once, in order."""
    wrong = [
        (before, number, at)
        for before, number, at in zip((after, *numbers), numbers, came_at, strict=False)
        if number != before + 1
    ]
    expected = f"events of {job_id} without gaps in their numbering"
    return [
        Finding("streams continue", expected, f"{number} after {before}", at) for before, number, at in wrong
    ]


def check_chats(chats: Iterable[Chat], windows: Sequence[Window]) -> list[Finding]:
    """Check that each request ends in time: with an answer, or a clear error if the engine may be hit.

    Without either only while something that the answer passes through is broken.
    """
    findings = []
    for chat in chats:
        waited_s = undisturbed(chat.begun_at, chat.ended_at, windows)
        if waited_s > ENDS_WITHIN_S:
            expected = f"every chat request ends within {ENDS_WITHIN_S:.0f} s"
            found = f"{chat.outcome} after {waited_s:.0f} s"
            findings.append(Finding("requests end", expected, found, chat.ended_at))
        if not chat.is_answered and not _is_excused(chat, windows):
            expected = "chat requests are answered unless a fault hit their engine"
            found = f"{chat.outcome} after {chat.ended_at - chat.begun_at:.0f} s"
            findings.append(Finding("requests end", expected, found, chat.ended_at))
    return findings


def _is_excused(chat: Chat, windows: Sequence[Window]) -> bool:
    if chat.outcome.startswith("500"):
        return False
    if any(window.meets(chat.begun_at, chat.ended_at) for window in windows):
        return True
    is_clear = chat.outcome.partition(" ")[2] in CLEAR_ERRORS
    return is_clear and any(
        each.ends_endpoint
        and each.begins <= chat.ended_at
        and undisturbed(each.ends, chat.begun_at, windows) <= ENDPOINT_ANSWERS_WITHIN_S
        for each in windows
    )


def check_left(processes: Sequence[str], ports: Sequence[int], files: Sequence[str]) -> list[Finding]:
    """Check that nothing made for jobs or services outlives them."""
    kinds = (("process", processes), ("port", [str(port) for port in ports]), ("file", files))
    return [Finding("nothing left behind", f"no {kind}", each) for kind, remains in kinds for each in remains]


def check_supervisor_is_missed(
    health: str, before: Mapping[str, int | None], now: Mapping[str, int | None]
) -> list[Finding]:
    """Check that the API says that the supervisor is dead, and that the services go on without it.

    ``before`` and ``now`` are the pids of those that were not killed with it.
    """
    rule = "services outlive their supervisor"
    findings = [
        Finding(rule, f"{name} goes on as {pid}", "not running" if now[name] is None else f"{now[name]}")
        for name, pid in before.items()
        if now[name] != pid
    ]
    if health != "down":
        within_s = SUPERVISOR_MISSED_WITHIN_S
        findings.append(
            Finding(rule, f"the API says within {within_s:.0f} s that the supervisor is down", health)
        )
    return findings


def undisturbed(begins: float, ends: float, windows: Sequence[Window]) -> float:
    """Return the seconds between two moments without those in which something was broken."""
    broken_s, done = 0.0, begins
    for window in sorted(windows, key=lambda each: each.begins):
        first, last = max(window.begins, done), min(window.ends, ends)
        if last > first:
            broken_s += last - first
            done = last
    return max(0.0, ends - begins - broken_s)
