"""What many people do with a platform in a day, one after the other and without pauses."""

import contextlib
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx
from trellis_cli.client import API, ApiClient
from trellis_cli.errors import Problem, Refusal

_HANDS = 3
_STREAMS = 8
#: A page is looked at for so long before its stream is closed.
_LOOK_S = (0.1, 2.0)
_PAUSE_S = 0.05
#: Rows whose tokens are shown.
_TOKEN_ROWS = 20
_TOKENS_TIMEOUT_S = 60.0
_JOBS_WAITING = 3


class Use:
    """Threads that use a platform until they are told to stop; what they do is counted."""

    def __init__(self, client: ApiClient, request: dict[str, Any], seed: int) -> None:
        """Prepare the simulated use; ``request`` launches a short job."""
        self._client, self._request = client, request
        self._streams = httpx.Client(
            base_url=f"{client.url}{API}",
            headers={"Authorization": client.token_header},
            timeout=_LOOK_S[1],
        )
        self._draw = random.Random(seed)  # noqa: S311 - no secret
        self._is_over = threading.Event()
        self._threads: list[threading.Thread] = []
        self.done: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def start(self) -> None:
        """Start the threads that use the platform."""
        works: list[Callable[[], None]] = [
            *[self._open_pages] * _HANDS,
            *[self._look_at_job] * _STREAMS,
            self._keep_jobs_coming,
            self._launch_and_stop,
            self._show_tokens,
        ]
        for work in works:
            thread = threading.Thread(target=self._repeat, args=(work,), daemon=True)
            thread.start()
            self._threads.append(thread)

    def stop(self) -> None:
        """End all threads."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(30)

    def _repeat(self, work: Callable[[], None]) -> None:
        while not self._is_over.wait(_PAUSE_S):
            try:
                work()
            except Refusal as refusal:
                self.refused[f"{work.__name__.strip('_')}: {refusal.status}"] += 1
            except (Problem, httpx.HTTPError) as error:
                self.refused[f"{work.__name__.strip('_')}: {type(error).__name__}"] += 1

    def _get(self, path: str, **params: Any) -> Any:
        answer = self._client.get(path, **params)
        self.done["requests"] += 1
        return answer

    def _pick_job(self) -> str | None:
        jobs = self._get("/jobs", limit=50)["items"]
        return str(self._draw.choice(jobs)["id"]) if jobs else None

    def _open_pages(self) -> None:
        """Open the overview, lists, a job with its curves and lines, and the launch page with its preview."""
        self._get("/monitoring/dashboard")
        for path in ("/models", "/datasets", "/recipes", "/rewards", "/data-tasks"):
            self._get(path)
        self._get(f"/datasets/{self._request['dataset']}/rows", limit=50)
        self._client.post("/jobs/preview", self._request)
        self.done["requests"] += 1
        if job := self._pick_job():
            for what in ("", "/metrics", "/logs", "/checkpoints", "/metric-keys"):
                self._get(f"/jobs/{job}{what}")
        self.done["pages"] += 1

    def _look_at_job(self) -> None:
        """Open the live stream of a job from its beginning, look for a moment, and leave."""
        job = self._pick_job()
        if job is None:
            return
        leaves = time.monotonic() + self._draw.uniform(*_LOOK_S)
        # A job that is over says nothing more: it is left in time, too.
        with (
            contextlib.suppress(httpx.ReadTimeout),
            self._streams.stream("GET", f"/jobs/{job}/events", params={"after": 0}) as answer,
        ):
            answer.raise_for_status()
            for _ in answer.iter_lines():
                if time.monotonic() > leaves or self._is_over.is_set():
                    break
        self.done["streams"] += 1

    def _keep_jobs_coming(self) -> None:
        """Let a few real jobs wait at any time, and take away some of those that are over."""
        waiting = self._get("/jobs", state=["queued", "launching", "running"], limit=50)["items"]
        if len(waiting) < _JOBS_WAITING:
            self._client.post("/jobs", self._request)
            self.done["jobs"] += 1
        for job in self._get("/jobs", state="stopped", limit=50)["items"][20:]:
            self._client.delete(f"/jobs/{job['id']}")
            self.done["jobs deleted"] += 1

    def _launch_and_stop(self) -> None:
        """Launch a job and stop it before it runs."""
        job = self._client.post("/jobs", {**self._request, "priority": -1})
        self._client.post(f"/jobs/{job['id']}/stop")
        self.done["jobs stopped"] += 1
        self._is_over.wait(0.5)

    def _show_tokens(self) -> None:
        """Request rows as a model's tokens, which a helper process of the workers makes."""
        body = {"model": self._request["model"], "offset": self._draw.randint(0, 500), "limit": _TOKEN_ROWS}
        task = self._client.post(f"/datasets/{self._request['dataset']}/rows/tokens", body)
        gives_up = time.monotonic() + _TOKENS_TIMEOUT_S
        while task["state"] not in ("succeeded", "failed", "cancelled") and time.monotonic() < gives_up:
            if self._is_over.wait(0.2):
                return
            task = self._get(f"/data-tasks/{task['id']}")
        self.done[f"tokens {task['state']}"] += 1
