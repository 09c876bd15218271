"""Jobs that report as a training process does: through the ingest API, without a process."""

import gzip
import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from urllib.request import Request, urlopen

import trellis_api.wiring  # noqa: F401 - jobs that end release what they read
from trellis_api.core.database import Database
from trellis_api.jobs import service
from trellis_contracts.states import JobState


def now() -> str:
    """Return the current time in the format of events."""
    return datetime.now(UTC).isoformat()


@dataclass
class ReportingJob:
    """Stands where the worker and the training process would: claims the job, then reports."""

    id: str
    url: str
    database: Database
    attempt: int = 0
    token: str = ""
    sequence: int = 0
    step: int = 0
    steps: int = 100

    def start(self) -> None:
        """Start the job as the launching worker does: QUEUED → LAUNCHING."""
        with self.database.write() as session:
            claim = service.claim_for_launch(session, job_id=self.id)
        assert claim is not None, "the job was not queued"
        self.attempt, self.token = claim.job.attempt, claim.token

    def send(self, *events: dict[str, Any]) -> None:
        """Send one batch of events."""
        self.sequence += 1
        batch = {"attempt": self.attempt, "sequence": self.sequence, "events": list(events)}
        request = Request(
            f"{self.url}/api/v1/ingest/jobs/{self.id}/batches",
            method="POST",
            data=gzip.compress(json.dumps(batch).encode()),
            headers={
                "Authorization": f"Bearer {self.token}",
                "Content-Type": "application/json",
                "Content-Encoding": "gzip",
            },
        )
        with urlopen(request, timeout=30) as answer:
            assert json.loads(answer.read())["accepted"]

    def beat(self) -> bool:
        """Send a heartbeat and return whether the platform wants the run to stop."""
        request = Request(
            f"{self.url}/api/v1/ingest/jobs/{self.id}/heartbeat",
            method="POST",
            data=json.dumps({"attempt": self.attempt, "step": self.step}).encode(),
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"},
        )
        with urlopen(request, timeout=30) as answer:
            return bool(json.loads(answer.read())["stop_requested"])

    def train(self, steps: int) -> None:
        """Report that many further steps, each with metrics, a log line and progress."""
        for _ in range(steps):
            self.step += 1
            values = {
                "critic/score/mean": self.step / self.steps,
                "actor/entropy": 1 - self.step / self.steps,
                "timing_s/step": 2.0,
                "actor/pg_clipfrac": 0.01 * self.step,
            }
            self.send(
                {"kind": "metrics", "time": now(), "step": self.step, "values": values},
                {"kind": "log", "time": now(), "stream": "stdout", "lines": [f"step:{self.step} done"]},
                {
                    "kind": "progress",
                    "time": now(),
                    "phase": "training",
                    "step": self.step,
                    "total_steps": self.steps,
                },
            )

    def settle(self, state: str, **why: Any) -> None:
        """Settle the job as the reconciling worker does."""
        with self.database.write() as session:
            service.settle(session, job_id=self.id, attempt=self.attempt, state=JobState(state), **why)
