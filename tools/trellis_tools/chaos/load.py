"""What a platform under a campaign has to do: jobs, viewers of live streams, and pages that read lists."""

import json
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from trellis_cli.client import API, ApiClient
from trellis_cli.demo import starter, steps
from trellis_cli.errors import ExitCode, Problem, Refusal
from trellis_contracts.states import FINISHED

SEED = 1
VIEWERS = 4
#: Unfinished jobs that are kept in the platform: one at work, the others in the queue.
_JOBS_AT_ONCE = 3
_TOTAL_STEPS = (3, 40)
#: One job in so many is told to stop.
_STOPPED_ONE_IN = 6
_PAUSE_S = 0.5
#: Longer than the stream's own sign of life.
_STREAM_TIMEOUT_S = 20.0


@dataclass
class Asked:
    """Jobs that were asked for, by name."""

    #: Name to id, where the platform said that it has them.
    accepted: dict[str, str] = field(default_factory=dict)
    #: When each was asked for.
    at: dict[str, float] = field(default_factory=dict)
    total_steps: dict[str, int] = field(default_factory=dict)
    #: Those whose request got no answer, or one that leaves it open.
    unsure: list[str] = field(default_factory=list)
    stopped: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class Seen:
    """What one viewer got of one job's stream in one connection."""

    job_id: str
    after: int
    numbers: list[int] = field(default_factory=list)
    #: When each number came.
    at: list[float] = field(default_factory=list)


class Load:
    """Threads that use a platform until they are told to stop."""

    def __init__(self, client: ApiClient, data_root: Path, seed: int) -> None:
        self._client = client
        self._streams = httpx.Client(
            base_url=f"{client.url}{API}",
            headers={"Authorization": client.token_header},
            timeout=_STREAM_TIMEOUT_S,
        )
        self._data_root = data_root
        self._draw = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret
        self._is_over = threading.Event()
        self._is_quiet = threading.Event()
        self._threads: list[threading.Thread] = []
        self._ids: dict[str, str] = {}
        self._number = 0
        self.asked = Asked()
        #: Time, request and status of each answer of 500 and more.
        self.bad_answers: list[tuple[float, str, int]] = []
        self.answers: Counter[str] = Counter()
        self.seen: list[Seen] = []

    def prepare(self) -> None:
        """Make the starter model and its rows known to the platform."""
        folder = self._data_root / "starter"
        starter.make_starter(folder, SEED)
        source = {"kind": "local", "path": str((folder / "model").relative_to(self._data_root))}
        self._ids = {
            "model": steps.ensure_model(self._client, "starter", source),
            "dataset": steps.ensure_dataset(self._client, folder / "data" / "sft.jsonl", "addition"),
        }

    @property
    def model_id(self) -> str:
        """The starter model, once it is known to the platform."""
        return self._ids["model"]

    def start(self) -> None:
        """Begin all of it."""
        works: list[Callable[[], None]] = [self._submit, self._read_lists, *[self._view] * VIEWERS]
        for number, work in enumerate(works):
            thread = threading.Thread(target=self._repeat, args=(work,), name=f"load-{number}", daemon=True)
            thread.start()
            self._threads.append(thread)

    def ask_for_no_more(self) -> None:
        """Let what was asked for come to its end; lists are read on."""
        self._is_quiet.set()

    def stop(self) -> None:
        """End the threads."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(_STREAM_TIMEOUT_S + 5)

    def submit_one(self) -> None:
        """Ask for one more job."""
        self._number += 1
        name, total_steps = f"chaos-{self._number}", self._draw.randint(*_TOTAL_STEPS)
        request = {
            "name": name,
            "recipe": "sft",
            "preset": starter.PRESET,
            **self._ids,
            "params": {"total_steps": total_steps, "validate_every": 0, "save_every": 0},
        }
        self.asked.total_steps[name], self.asked.at[name] = total_steps, time.time()
        job = self._ask("POST /jobs", lambda: self._client.post("/jobs", request))
        if job is None:
            self.asked.unsure.append(name)
        else:
            self.asked.accepted[name] = str(job["id"])

    def _repeat(self, work: Callable[[], None]) -> None:
        while not self._is_over.is_set():
            work()
            self._is_over.wait(_PAUSE_S)

    def _submit(self) -> None:
        if self._is_quiet.is_set():
            return
        page = self._ask(
            "GET /jobs",
            lambda: self._client.get("/jobs", kind="train", state=["queued", "launching", "running"]),
        )
        if page is None:
            return
        unfinished = page["items"]
        if len(unfinished) < _JOBS_AT_ONCE:
            self.submit_one()
        elif self._draw.random() * _STOPPED_ONE_IN * 40 < 1:
            self._stop_one(self._draw.choice(unfinished))

    def _stop_one(self, job: dict[str, Any]) -> None:
        # Noted first: the answer may be lost, and the wish be heard.
        self.asked.stopped.add(job["name"])
        self._ask("POST /jobs/ID/stop", lambda: self._client.post(f"/jobs/{job['id']}/stop"))

    def _read_lists(self) -> None:
        self._ask("GET /monitoring/dashboard", lambda: self._client.get("/monitoring/dashboard"))
        page = self._ask("GET /jobs", lambda: self._client.get("/jobs", limit=50))
        if page and page["items"]:
            job_id = page["items"][0]["id"]
            self._ask("GET /jobs/ID/metrics", lambda: self._client.get(f"/jobs/{job_id}/metrics"))
            self._ask("GET /jobs/ID/logs", lambda: self._client.get(f"/jobs/{job_id}/logs"))

    def _view(self) -> None:
        """Follow the job that runs from its first event to its end, through every break of the connection."""
        page = self._ask(
            "GET /jobs", lambda: self._client.get("/jobs", kind="train", state="running", limit=1)
        )
        if not page or not page["items"]:
            return
        job_id, position = page["items"][0]["id"], 0
        while not self._is_over.is_set():
            seen = Seen(job_id, position)
            is_over = self._follow(seen)
            self.seen.append(seen)
            position = seen.numbers[-1] if seen.numbers else position
            if is_over:
                return
            self._is_over.wait(_PAUSE_S)

    def _follow(self, seen: Seen) -> bool:
        """Read one connection to its end; whether the job has come to its own."""
        path, position = f"/jobs/{seen.job_id}/events", {"after": seen.after}
        try:
            with self._streams.stream("GET", path, params=position) as answer:
                self._note("GET /jobs/ID/events", answer.status_code)
                if answer.is_error:
                    return answer.status_code == 404
                for line in answer.iter_lines():
                    if self._is_over.is_set():
                        return True
                    if line.startswith("id:"):
                        seen.numbers.append(int(line[3:]))
                        seen.at.append(time.time())
                    elif line.startswith("data:") and _tells_end(line[5:]):
                        return True
        except httpx.HTTPError:
            self.answers["GET /jobs/ID/events: no answer"] += 1
        return False

    def _ask(self, request: str, call: Callable[[], Any]) -> Any:
        """Make a request; return its answer, or None if it failed or was refused."""
        try:
            answer = call()
        except Refusal as refusal:
            self._note(request, refusal.status)
            return None
        except Problem as problem:
            if problem.exit_code != ExitCode.UNREACHABLE:
                raise
            self.answers[f"{request}: no answer"] += 1
            return None
        self._note(request, 200)
        return answer

    def _note(self, request: str, status: int) -> None:
        self.answers[f"{request}: {status}"] += 1
        if status >= 500:
            self.bad_answers.append((time.time(), request, status))


def _tells_end(data: str) -> bool:
    """Return whether this event says that the job is over."""
    try:
        told = json.loads(data)
    except ValueError:
        return False
    return isinstance(told, dict) and told.get("state") in FINISHED
