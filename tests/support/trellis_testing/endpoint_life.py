"""What happens to endpoints behind the API's back: a worker launches them, a run reports, a sweep settles."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from fastapi.testclient import TestClient
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.endpoints import repository
from trellis_api.jobs import service as jobs
from trellis_contracts.attempt import ENGINE_KEY_FILE
from trellis_contracts.states import JobState

KEY = "the key of the engine alone"


@dataclass
class Life:
    """What happens to endpoints behind the API's back."""

    database: Database
    settings: Settings

    def launch(self, endpoint: dict[str, Any]) -> str:
        """Claim the endpoint's job and give the engine its key, as a worker does; return the ingest token."""
        with self.database.write() as session:
            claim = jobs.claim_for_launch(session, job_id=endpoint["run_id"])
            assert claim is not None
            folder = self.settings.attempt_dir(claim.job.id, claim.job.attempt)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ENGINE_KEY_FILE).write_text(KEY)
        return claim.token

    def report_ready(
        self, client: TestClient, endpoint: dict[str, Any], token: str, port: int, **facts: Any
    ) -> None:
        """Report where the run's engine answers, with room for the adapters that it was started for."""
        with self.database.read() as session:
            row = repository.find_by_job(session, job_id=endpoint["run_id"])
            max_lora_rank = row.max_lora_rank if row else None
        event = {
            "kind": "serving",
            "time": utc_now().isoformat(),
            "host": "127.0.0.1",
            "port": port,
            "max_model_len": 512,
            "max_lora_rank": max_lora_rank,
            **facts,
        }
        answer = client.post(
            f"/api/v1/ingest/jobs/{endpoint['run_id']}/batches",
            json={"attempt": endpoint["attempt"], "sequence": 1, "events": [event]},
            headers={"Authorization": f"Bearer {token}"},
        )
        assert answer.status_code == 200, answer.text

    def end(self, endpoint: dict[str, Any], state: JobState, **why: Any) -> None:
        """Settle the run in its final state."""
        with self.database.write() as session:
            assert jobs.settle(
                session, job_id=endpoint["run_id"], attempt=endpoint["attempt"], state=state, **why
            )

    def age(self, endpoint: dict[str, Any], seconds: float) -> None:
        """Let it have become ready, and nobody have used it, so long ago."""
        with self.database.write() as session:
            row = repository.find_endpoint(session, endpoint_id=endpoint["id"])
            assert row is not None
            row.ready_at, row.last_used_at = utc_now() - timedelta(seconds=seconds), None
            session.add(row)
