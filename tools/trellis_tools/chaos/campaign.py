"""The campaign: strike, release, wait until all is well, look at what must hold; again until time is up."""

import sqlite3
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from typing import Any

import redis
from trellis_cli.errors import Problem
from trellis_cli.services.supervisor import Say

from trellis_tools.chaos import invariants
from trellis_tools.chaos.accounts import read_kept, read_own
from trellis_tools.chaos.chats import Chat
from trellis_tools.chaos.fault import Fault, MissedError
from trellis_tools.chaos.faults import FAULTS, list_kinds
from trellis_tools.chaos.ground import Ground
from trellis_tools.chaos.invariants import Finding, JobFacts, Window
from trellis_tools.chaos.load import Load
from trellis_tools.chaos.plan import PlannedFault, plan_faults
from trellis_tools.chaos.run_ends import RunEnds
from trellis_tools.chaos.serving import Serving

#: After a fault: until all services answer (a dead one may be due for its longest pause first), and until a
#: job runs again.
_HEALTHY_TIMEOUT_S = 240.0
_MOVING_TIMEOUT_S = 150.0
#: For what ends by itself and soon.
_SOON_S = 20.0
_DRAIN_TIMEOUT_S = 300.0
_POLL_S = 0.5
#: What a platform that does not come back, or a fault that cannot be taken away, ends in.
_TROUBLES = (Problem, OSError, redis.RedisError, sqlite3.Error)


@dataclass
class Violation:
    """What was found wrong, with the last fault before it."""

    fault: int
    kind: str
    at: float
    finding: Finding
    #: How often the same was found after the same fault; time and finding are the first one's.
    count: int = 1


@dataclass
class Struck:
    """One fault as it went."""

    planned: PlannedFault
    #: When something was found to break; of one that did not strike, since when it was looked for.
    at: float
    #: Why it did not strike, if it did not.
    missed: str | None = None
    #: From its release until all answered, every run that had ended was settled, and a job ran.
    recovery_s: float | None = None


@dataclass
class Outcome:
    """All that a campaign has to tell."""

    seed: int
    database: str
    left_out: dict[str, str]
    struck: list[Struck] = field(default_factory=list)
    violations: list[Violation] = field(default_factory=list)
    jobs: dict[str, int] = field(default_factory=dict)
    answers: dict[str, int] = field(default_factory=dict)
    #: Chat requests by how they ended, and the longest in seconds.
    chats: dict[str, int] = field(default_factory=dict)
    slowest_chat_s: float | None = None
    #: Whether it came to its end, and was not interrupted.
    is_complete: bool = False

    @property
    def is_held(self) -> bool:
        """Whether everything held until the end."""
        return self.is_complete and not self.violations


class Campaign:
    """One platform, one load, one seed."""

    def __init__(
        self,
        ground: Ground,
        load: Load,
        seed: int,
        say: Say,
        *,
        wanted: Sequence[str] = (),
        has_endpoint: bool = True,
    ) -> None:
        """Prepare a campaign; ``wanted`` are the kinds of faults, all if none is named."""
        self._ground, self._load, self._say = ground, load, say
        possible, left_out = list_kinds(
            is_on_sqlite=ground.is_on_sqlite, disk=ground.disk, has_endpoint=has_endpoint
        )
        kinds = [kind for kind in possible if kind in wanted or not wanted]
        if not kinds:
            raise Problem("; ".join(f"{kind} is not possible here: {left_out[kind]}" for kind in wanted))
        self._plan = plan_faults(seed, kinds)
        self.outcome = Outcome(seed, "sqlite" if ground.is_on_sqlite else "postgresql", left_out)
        self._has_endpoint = has_endpoint
        self._serving: Serving | None = None
        self._windows: list[Window] = []
        self._run_ends = RunEnds(ground.runs)
        #: Jobs that were looked over after their end.
        self._looked_over: set[str] = set()
        #: What an earlier look found.
        self._reported: set[tuple[str, str, str]] = set()

    def run(self, minutes: float, count: int | None = None) -> None:
        """Strike until the time is over or there were so many faults, then let everything come to its end."""
        self._load.prepare()
        if self._has_endpoint:
            self._serving = Serving(self._ground, self._load.model_id)
            self._serving.start()
            self._say("the endpoint is ready")
        try:
            self._strike_and_look(minutes, count)
            self._look_at_load()
            self._ground.supervisor.down()
            self._report(invariants.check_left(*self._ground.list_left_at_end()))
            self.outcome.is_complete = True
        except KeyboardInterrupt:
            self._say("interrupted; results so far:")
        except _TROUBLES as trouble:
            expected = f"after fault {self._last_number}: the campaign can go on"
            self._report([Finding("it recovers", expected, str(trouble))])

    def _strike_and_look(self, minutes: float, count: int | None) -> None:
        """Keep the platform busy and break it, until the last job has ended."""
        self._load.start()
        self._run_ends.start()
        ends = time.monotonic() + 60 * minutes
        try:
            while time.monotonic() < ends and len(self.outcome.struck) != count:
                self._strike(next(self._plan))
            self._load.ask_for_no_more()
            self._wait("all jobs have finished", _DRAIN_TIMEOUT_S, lambda: not self._list_unfinished())
            self._stop_serving()
            self._look_over(is_end=True)
        finally:
            self._load.stop()
            self._run_ends.stop()
            if self._serving is not None:
                self._serving.end_chats()

    def _stop_serving(self) -> None:
        """Let the endpoint show that it is as it was before the first fault, and end it."""
        serving = self._serving
        if serving is None:
            return
        now = time.time()
        within_s = invariants.ENDPOINT_ANSWERS_WITHIN_S
        self._wait("the endpoint answers again", within_s, lambda: serving.is_answering(now))
        serving.ask_to_stop()
        self._wait("the endpoint has stopped", invariants.SETTLED_WITHIN_S, serving.is_stopped)

    def _strike(self, planned: PlannedFault) -> None:
        time.sleep(planned.pause_s)
        fault = FAULTS[planned.kind](planned)
        looked_for = time.time()
        try:
            fault.find(self._ground)
        except MissedError as missed:
            self.outcome.struck.append(Struck(planned, looked_for, str(missed)))
            self._say(f"{planned.number} {planned.kind}: skipped, {missed}")
            return
        attempt = self._serving.read_attempt() if self._serving else 0
        struck = Struck(planned, time.time())
        self.outcome.struck.append(struck)
        fault.strike(self._ground)
        self._say(f"{planned.number} {planned.kind}, for {fault.length_s:.0f} s")
        try:
            time.sleep(fault.length_s)
            self._report(fault.check(self._ground))
        finally:
            fault.release(self._ground)
        if fault.frozen_job is not None:
            self._run_ends.note_frozen(fault.frozen_job, struck.at)
        struck.recovery_s = self._recover(fault, struck, attempt)
        self._say(f"{planned.number} {planned.kind}: recovered after {struck.recovery_s:.1f} s")
        self._look_over()

    def _recover(self, fault: Fault, struck: Struck, attempt: int) -> float:
        """Wait until the platform works again; the answer is how long that took.

        ``attempt`` is that of the endpoint which the fault found.
        """
        released = time.time()
        index = len(self._windows)
        ends = (fault.ends_runs, fault.ends_endpoint)
        self._windows.append(Window(struck.at, released + _HEALTHY_TIMEOUT_S, *ends))
        self._wait("all services respond", _HEALTHY_TIMEOUT_S, self._is_healthy)
        self._windows[index] = Window(struck.at, time.time(), *ends)
        if (serving := self._serving) is not None:
            self._wait(
                "the endpoint is settled",
                fault.endpoint_settled_within_s,
                lambda: serving.is_settled(since=released, before=attempt),
            )
        self._wait("all ended runs are settled", _MOVING_TIMEOUT_S, self._is_settled)
        self._wait("a job runs", _MOVING_TIMEOUT_S, lambda: self._is_moving(released))
        return time.time() - released

    def _is_healthy(self) -> bool:
        problems = self._ground.find_problems()
        if any("has given up" in problem for problem in problems):
            # So often no service dies elsewhere: what the supervisor asks a person for is done.
            self._say("the supervisor gave up on a service: restarted it")
            self._ground.start()
        return not problems

    def _is_settled(self) -> bool:
        unfinished = {job.id for job in self._list_unfinished()}
        return not unfinished & {end.job_id for end in self._run_ends.list()}

    def _is_moving(self, since: float) -> bool:
        """Return whether a job that began since then is running, or one has succeeded."""
        alive = self._ground.runs.find()
        return any(
            job.state == "running" and job.id in alive and (job.started_at or 0) <= time.time() - 1
            for job in self._list_jobs()
        ) or any((job.finished_at or 0) > since and job.state == "succeeded" for job in self._list_jobs())

    def _look_over(self, *, is_end: bool = False) -> None:
        """Check everything that can be known now."""
        jobs = self._list_jobs()
        now = time.time()
        by_id = {job.id: job for job in jobs}
        for end in self._run_ends.list():
            if end.job_id in by_id:
                self._report(invariants.check_settled(by_id[end.job_id], end, self._windows, now))
        self._report(invariants.check_starts(jobs, self._windows, now))
        fresh = [job for job in jobs if job.is_over and job.id not in self._looked_over]
        for job in fresh:
            self._looked_over.add(job.id)
            self._look_at_job(job)
        self._look_for_left([job.id for job in jobs if job.is_over], is_idle=is_end)

    def _look_at_job(self, job: JobFacts) -> None:
        own, kept = read_own(self._ground.data_root / "jobs" / job.id), read_kept(self._ground.client, job.id)
        self._report(invariants.check_begun_once(job, own))
        self._report(invariants.check_metrics(job, own, kept))
        self._report(invariants.check_lines(job, own, kept))
        self._report(invariants.check_outcome(job, self._windows))

    def _look_for_left(self, over: list[str], *, is_idle: bool) -> None:
        """Check for leftover processes and slots of finished jobs, after a short grace period."""
        deadline = time.monotonic() + _SOON_S
        while True:
            used = int(self._ground.client.get("/monitoring/dashboard")["slots"]["used"])
            findings = invariants.check_slots(used, self._list_jobs())
            findings += invariants.check_left(self._ground.list_left(over, is_idle=is_idle), [], [])
            if self._serving is not None:
                left, ports = self._serving.list_left(), self._serving.list_ports()
                findings += invariants.check_left(left, ports, [])
            if not findings or time.monotonic() > deadline:
                self._report(findings)
                return
            time.sleep(_POLL_S)

    def _look_at_load(self) -> None:
        asked, load = self._load.asked, self._load
        jobs = self._list_jobs()
        listed = [(job.id, job.name) for job in jobs]
        self._report(invariants.check_jobs_are_kept(asked.accepted, asked.unsure, listed, asked.at))
        streams = (
            invariants.check_stream(seen.job_id, seen.after, seen.numbers, seen.at) for seen in load.seen
        )
        self._report(chain.from_iterable(streams))
        self._report(invariants.check_answers(load.bad_answers, self._windows))
        if self._serving is not None and self._serving.chats is not None:
            self._look_at_chats(self._serving.chats.list())
        self.outcome.answers = dict(sorted(load.answers.items()))
        for job in jobs:
            self.outcome.jobs[job.state] = self.outcome.jobs.get(job.state, 0) + 1

    def _look_at_chats(self, chats: list[Chat]) -> None:
        self._report(invariants.check_chats(chats, self._windows))
        self.outcome.chats = dict(Counter(chat.outcome for chat in chats).most_common())
        self.outcome.slowest_chat_s = max((chat.ended_at - chat.begun_at for chat in chats), default=None)

    def _report(self, findings: Iterable[Finding]) -> None:
        """Note what no earlier look has found; the same of one look, after the same fault, is counted."""
        now, earlier = time.time(), frozenset(self._reported)
        for finding in findings:
            # A process or a port is known by what was found, all else by what was expected of it.
            key = (finding.rule, finding.expected, finding.found if finding.at is None else "")
            if key not in earlier:
                self._reported.add(key)
                self._note(finding, finding.at or now)

    def _note(self, finding: Finding, at: float) -> None:
        fault = self._find_fault(at)
        for known in self.outcome.violations:
            same = (known.finding.rule, known.finding.expected) == (finding.rule, finding.expected)
            if same and known.fault == (fault.number if fault else 0):
                known.count += 1
                return
        number, kind = (fault.number, fault.kind) if fault else (0, "none")
        self.outcome.violations.append(Violation(number, kind, at, finding))
        self._say(f"VIOLATION {finding.rule}: expected {finding.expected}; found {finding.found}")

    def _find_fault(self, at: float) -> PlannedFault | None:
        """Return the last fault that had struck by then, or None."""
        struck = [each for each in self.outcome.struck if each.missed is None and each.at <= at]
        return struck[-1].planned if struck else None

    @property
    def _last_number(self) -> int:
        return self.outcome.struck[-1].planned.number if self.outcome.struck else 0

    def _wait(self, what: str, timeout_s: float, look: Callable[[], bool]) -> None:
        """Wait for a condition; that it does not come true is a violation."""
        deadline = time.monotonic() + timeout_s
        trouble = "it didn't happen"
        while time.monotonic() < deadline:
            try:
                if look():
                    return
            except Problem as problem:
                trouble = problem.message
            time.sleep(_POLL_S)
        problems = self._ground.find_problems()
        expected = f"after fault {self._last_number}: {what} within {timeout_s:.0f} s"
        self._report([Finding("it recovers", expected, "; ".join(problems) or trouble)])

    def _list_unfinished(self) -> list[JobFacts]:
        return [job for job in self._list_jobs() if not job.is_over]

    def _list_jobs(self) -> list[JobFacts]:
        asked = self._load.asked
        return [
            _read_job(
                each, asked.total_steps.get(each["name"], 0), is_stop_asked=each["name"] in asked.stopped
            )
            for each in self._ground.client.pages("/jobs", kind="train", limit=200)
        ]


def _read_job(job: dict[str, Any], total_steps: int, *, is_stop_asked: bool) -> JobFacts:
    return JobFacts(
        id=job["id"],
        name=job["name"],
        state=job["state"],
        attempt=job["attempt"],
        created_at=_seconds(job["created_at"]) or 0.0,
        launched_at=_seconds(job["launched_at"]),
        started_at=_seconds(job["started_at"]),
        finished_at=_seconds(job["finished_at"]),
        total_steps=total_steps,
        is_stop_asked=is_stop_asked,
        reason=(job["failure"] or {}).get("reason"),
    )


def _seconds(moment: str | None) -> float | None:
    return datetime.fromisoformat(moment).timestamp() if moment else None
