"""The live stream: everything in order, nothing twice, whenever a page connects."""

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import uvicorn
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.ingest.service import ingest_batch
from trellis_api.jobs import repository
from trellis_api.jobs.errors import JobNotFound
from trellis_api.jobs.events import service as events
from trellis_api.jobs.events.stream import EventHub, stream_events
from trellis_api.jobs.queue import admission
from trellis_api.main import create_app
from trellis_contracts.events import IngestBatch
from trellis_contracts.states import JobState
from trellis_testing.waiting import wait_until

Event = tuple[int, str, dict[str, Any]]


@pytest.fixture
def database(settings: Settings, migrated: Database) -> Iterator[Database]:
    """A database that really commits, because a stream looks at it from threads of its own."""
    settings.data_root.mkdir(parents=True)
    database = Database(settings)
    yield database
    with database.write() as session:
        for job in repository.list_jobs(session, wanted=repository.JobFilter(), before=None, limit=1000):
            repository.delete_job(session, job_id=job.id)
            repository.delete_purge(session, job_id=job.id)
    database.dispose()


def parse(text: str) -> list[Event]:
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.split(": ", 1) for line in block.splitlines() if ": " in line)
        if "event" in fields:
            found.append((int(fields["id"]), fields["event"], json.loads(fields["data"])))
    return found


def publish(database: Database, job_id: str, *kinds: str) -> None:
    with database.write() as session:
        job = repository.lock_job(session, job_id=job_id)
        assert job is not None
        for kind in kinds:
            events.publish(session, job=job, kind=kind, data={"kind": kind})


def follow(database: Database, job_id: str, asked: int | None, *, until: int) -> list[Event]:
    """Connect and read until the given sequence number."""

    async def read() -> list[Event]:
        hub = EventHub(database, poll_interval_s=0.01)
        position = hub.resolve_position(job_id, asked)
        seen: list[Event] = []
        async for chunk in stream_events(hub, job_id=job_id, position=position):
            seen += parse(chunk.decode())
            if seen and seen[-1][0] >= until:
                break
        await hub.close()
        return seen

    return asyncio.run(asyncio.wait_for(read(), timeout=20))


def test_a_page_that_connects_again_gets_what_it_missed(
    database: Database, make_job: Callable[..., str]
) -> None:
    job_id = make_job()
    publish(database, job_id, "one", "two", "three")

    seen = follow(database, job_id, 1, until=3)

    assert [(sequence, name) for sequence, name, _ in seen] == [(2, "two"), (3, "three")]


def test_more_than_a_page_of_events_comes_completely(
    database: Database, make_job: Callable[..., str]
) -> None:
    job_id = make_job()
    publish(database, job_id, *["tick"] * 1_234)

    seen = follow(database, job_id, 0, until=1_234)

    assert [sequence for sequence, _, _ in seen] == list(range(1, 1_235))


@pytest.mark.parametrize("asked", [99, 2**53])
def test_a_position_that_does_not_exist_leads_to_a_reset(
    database: Database, make_job: Callable[..., str], asked: int
) -> None:
    job_id = make_job()
    publish(database, job_id, "one", "two")

    seen = follow(database, job_id, asked, until=2)

    assert [(sequence, name) for sequence, name, _ in seen] == [(2, "reset")]


def test_a_position_whose_events_were_dropped_leads_to_a_reset(
    database: Database, make_job: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "KEPT_EVENTS", 100)
    job_id = make_job()
    for _ in range(25):
        publish(database, job_id, *["tick"] * 100)

    with database.read() as session:
        oldest = events.find_oldest_position(session, job_id=job_id)
    seen = follow(database, job_id, 5, until=2_500)

    assert oldest is not None
    assert oldest > 1_000
    assert [name for _, name, _ in seen] == ["reset"]


def test_log_events_carry_their_lines(database: Database, make_launched: Callable[..., Any]) -> None:
    launched = make_launched()
    log = {"kind": "log", "time": utc_now().isoformat(), "stream": "stdout", "lines": ["a", "b"]}
    batch = IngestBatch.model_validate({"attempt": 1, "sequence": 1, "events": [log, log]})
    with database.write() as session:
        ingest_batch(session, job_id=launched.job_id, batch=batch)

    seen = follow(database, launched.job_id, 0, until=4)

    lines = [[line["line"] for line in data["lines"]] for _, name, data in seen if name == "logs"]
    assert lines == [[1, 2], [3, 4]]


def test_an_unknown_job_has_no_stream(database: Database) -> None:
    hub = EventHub(database, poll_interval_s=1)

    with pytest.raises(JobNotFound):
        hub.resolve_position("job_aaaaaaaaaaaa", 0)


@pytest.fixture
def live(settings: Settings, database: Database) -> Iterator[tuple[str, str]]:
    """A real server: its address and admin token."""
    app = create_app(settings)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning", timeout_graceful_shutdown=1))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    wait_until(lambda: server.started, 20, "the server listens", pause_s=0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}", settings.admin_token_path.read_text().strip()
    server.should_exit = True
    thread.join(timeout=20)


def test_an_event_reaches_the_browser_within_a_second(
    live: tuple[str, str], database: Database, make_job: Callable[..., str]
) -> None:
    address, token = live
    job_id = make_job()
    delays = []

    with (
        httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, timeout=10) as client,
        client.stream("GET", f"/api/v1/jobs/{job_id}/events", params={"after": 0}) as response,
    ):
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = response.iter_lines()
        for _ in range(5):
            begin = time.perf_counter()
            publish(database, job_id, "tick")
            next(line for line in lines if line == "event: tick")
            delays.append(time.perf_counter() - begin)

    assert max(delays) < 1.0


@pytest.mark.smoke
def test_writers_at_the_same_time_leave_no_gap_for_a_reader(
    database: Database, make_job: Callable[..., str]
) -> None:
    """A number that became visible before a smaller one would be lost to whoever read in between."""
    job_id = make_job()
    total = 4 * 40

    def write() -> None:
        for _ in range(40):
            publish(database, job_id, "tick")

    writers = [threading.Thread(target=write) for _ in range(4)]
    for writer in writers:
        writer.start()
    seen = follow(database, job_id, 0, until=total)
    for writer in writers:
        writer.join()

    assert [sequence for sequence, _, _ in seen] == list(range(1, total + 1))


def test_two_workers_never_claim_the_same_job(database: Database, make_job: Callable[..., str]) -> None:
    for _ in range(12):
        make_job()
    claimed: list[str] = []

    def work() -> None:
        while True:
            with database.write() as session:
                claim = admission.claim_next(session, total_slots=8, max_exports=1)
                if claim is None:
                    return
                claimed.append(claim.job.id)

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()

    assert len(claimed) == len(set(claimed)) == 8
    with database.read() as session:
        states = [
            job.state
            for job in repository.list_jobs(session, wanted=repository.JobFilter(), before=None, limit=99)
        ]
    assert states.count(JobState.LAUNCHING) == 8
