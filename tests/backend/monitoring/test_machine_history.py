"""Machines over time: figures of this one and of the cluster's nodes, and processes that grow."""

import os
import sys
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from trellis_api.core.database import Database
from trellis_api.core.ray_cluster import GpuDevice, RayNode
from trellis_api.monitoring import figures, history
from trellis_api.monitoring.models import MachineSample

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MB = 1000**2


def sample(second: float, node: str = "alpha", processes: Any = (), **values: float) -> MachineSample:
    return MachineSample(
        node=node,
        at=NOON + timedelta(seconds=second),
        figures=values,
        counters={},
        processes=list(processes),
    )


def process(pid: int, memory: int, **more: Any) -> dict[str, Any]:
    return {"pid": pid, "started_at": 7.0, "name": f"p{pid}", "job_id": None, "memory_bytes": memory, **more}


@pytest.fixture
def keep(database: Database, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Keeps samples, shortly after noon of the first of January."""
    monkeypatch.setattr(history, "utc_now", lambda: NOON + timedelta(hours=1))

    def add(*samples: MachineSample) -> None:
        with database.write() as session:
            history.record(session, samples)

    return add


def test_rates_are_the_growth_of_counters() -> None:
    before = {"cpu_busy_s": 10.0, "cpu_total_s": 100.0, "disk_read_bytes": 0.0, "network_sent_bytes": 500.0}
    after = {"cpu_busy_s": 15.0, "cpu_total_s": 120.0, "disk_read_bytes": 4000.0, "network_sent_bytes": 500.0}

    assert figures.compute_rates(before, after, 10.0) == {
        "cpu_percent": 25.0,
        "disk_read_bytes_per_s": 400.0,
        "network_sent_bytes_per_s": 0.0,
    }


def test_a_restart_of_the_machine_leaves_a_gap() -> None:
    assert figures.compute_rates({"disk_read_bytes": 9.0}, {"disk_read_bytes": 1.0}, 10.0) == {}


def test_this_machine_is_measured_for_real(tmp_path: Path) -> None:
    first, second = figures.read_counters(), figures.read_counters()
    levels = figures.measure_levels(tmp_path)

    assert 0 <= second["cpu_busy_s"] - first["cpu_busy_s"] <= second["cpu_total_s"] - first["cpu_total_s"]
    assert 0 < levels["memory_used_bytes"] < levels["memory_total_bytes"]
    assert 0 < levels["disk_used_bytes"] < levels["disk_total_bytes"]


def test_the_devices_of_a_node_are_numbered_and_gaps_are_left_out() -> None:
    devices = [GpuDevice(0, "H100", 80.0, 5, 10, 40.0, 300.0), GpuDevice(1, "H100", None, 6, 10, None)]

    described = figures.describe_node(
        RayNode("id", "alpha", {}, devices=devices, figures={"cpu_percent": 3.0})
    )

    assert described == {
        "cpu_percent": 3.0,
        "gpu0_utilization_percent": 80.0,
        "gpu0_memory_used_bytes": 5.0,
        "gpu0_memory_total_bytes": 10.0,
        "gpu0_power_watts": 300.0,
        "gpu1_memory_used_bytes": 6.0,
        "gpu1_memory_total_bytes": 10.0,
    }


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (["/v/bin/python", "-m", "celery", "-A", "trellis_workers.core.app", "worker"], "celery"),
        (["/v/bin/python", "-m", "trellis_cli", "supervise"], "trellis_cli supervise"),
        (
            ["/v/bin/python", "-m", "trellis_train.entrypoint", "/data/job_1/spec.json"],
            "trellis_train.entrypoint",
        ),
        (["ray::WorkerDict.actor_update"], "ray::WorkerDict.actor_update"),
        (["/usr/bin/python3", "/opt/ray/dashboard/agent.py", "--token=secret"], "python3 agent.py"),
        (["/usr/bin/redis-server", "127.0.0.1:6379"], "redis-server"),
        ([], ""),
    ],
)
def test_a_process_has_a_name_without_its_arguments(words: list[str], name: str) -> None:
    assert figures.name_process(words) == name


def test_large_processes_are_listed_for_real(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figures, "_LISTED_BYTES", 0)
    monkeypatch.setattr(figures, "_LISTED_PROCESSES", 10_000)

    own = [each for each in figures.list_processes() if each["pid"] == os.getpid()]

    assert len(own) == 1
    assert own[0]["memory_bytes"] > 10 * MB
    assert own[0]["started_at"] < datetime.now(UTC).timestamp()
    assert sys.argv[0] not in own[0]["name"]


def test_history_is_averaged_over_stretches_node_by_node(client: Any, keep: Callable[..., None]) -> None:
    keep(
        *(sample(10 * number, cpu_percent=float(number)) for number in range(12)),
        sample(0, node="beta", cpu_percent=50.0, gpu0_power_watts=300.0),
        sample(90, node="beta", cpu_percent=70.0),
    )
    query = {"since": NOON.isoformat(), "until": (NOON + timedelta(minutes=10)).isoformat(), "max_points": 10}

    answer = client.get("/api/v1/monitoring/machines", params=query).json()

    alpha, beta = answer["nodes"]
    assert answer["stretch_s"] == 60
    assert (alpha["node"], alpha["figures"]) == ("alpha", {"cpu_percent": [2.5, 8.5]})
    assert beta["figures"] == {"cpu_percent": [50.0, 70.0], "gpu0_power_watts": [300.0, None]}
    assert [datetime.fromisoformat(at) for at in beta["at"]] == [NOON, NOON + timedelta(minutes=1)]


def test_a_moment_is_kept_once_and_a_week_long(
    database: Database, keep: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    keep(sample(0, cpu_percent=1.0))
    keep(sample(0, cpu_percent=2.0), sample(10, cpu_percent=3.0))
    later = NOON + history.KEPT + timedelta(seconds=5)
    monkeypatch.setattr(history, "utc_now", lambda: later)
    keep()

    with database.read() as session:
        found = history.read_history(session, since=NOON, until=later, max_points=100_000)

    assert [node.figures for node in found.nodes] == [{"cpu_percent": [3.0]}]


def test_processes_that_grow_stand_first(client: Any, keep: Callable[..., None]) -> None:
    def look(minute: int) -> MachineSample:
        steady, leaking = (
            process(1, 900 * MB),
            process(2, (200 + 20 * minute) * MB, job_id="job_aaaaaaaaaaaa"),
        )
        gone = [process(3, 400 * MB)] if minute < 2 else []
        return sample(60 * minute, processes=[steady, leaking, *gone])

    keep(*map(look, range(30)), sample(1801))
    query = {"since": NOON.isoformat(), "until": (NOON + timedelta(hours=1)).isoformat()}

    leaking, steady, gone = client.get("/api/v1/monitoring/processes", params=query).json()

    assert (leaking["pid"], leaking["is_growing"], leaking["job_id"]) == (2, True, "job_aaaaaaaaaaaa")
    assert (leaking["memory_bytes"], leaking["peak_bytes"], leaking["growth_bytes"]) == (
        780 * MB,
        780 * MB,
        400 * MB,
    )
    assert leaking["growth_bytes_per_h"] == pytest.approx(20 * 60 * MB)
    assert (leaking["job_name"], steady["growth_bytes_per_h"]) == (None, 0)
    assert (steady["pid"], steady["is_growing"], steady["growth_bytes"]) == (1, False, 0)
    assert (gone["pid"], gone["is_alive"], gone["growth_bytes"]) == (3, False, None)
    assert len(leaking["memory"]) == len(leaking["at"]) == 30


def test_the_samples_of_a_range_are_not_held_in_memory(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "utc_now", lambda: NOON + timedelta(hours=1))
    values = {f"gpu{number}_utilization_percent": number + 0.5 for number in range(20)}
    with database.write() as session:
        session.add_all(sample(number, **values) for number in range(600))
    average, snapshots = history._average, []

    def look(*found: Any) -> Any:
        snapshots.append(tracemalloc.take_snapshot())
        return average(*found)

    monkeypatch.setattr(history, "_average", look)
    tracemalloc.start()
    try:
        with database.read() as session:
            history.read_history(session, since=NOON, until=NOON + timedelta(hours=1), max_points=10)
    finally:
        tracemalloc.stop()

    (snapshot,) = snapshots
    # Where drivers decode JSON, so that other threads are not measured; all at once take 0.7 MB.
    decoders = [
        tracemalloc.Filter(True, f"*/{name}") for name in ("sql/sqltypes.py", "psycopg/types/json.py")
    ]
    left = snapshot.filter_traces(decoders).statistics("filename")
    assert sum(each.size for each in left) < 0.3 * MB


def test_whole_samples_are_not_read_for_their_processes(
    database: Database, keep: Callable[..., None]
) -> None:
    keep(sample(0, processes=[process(1, 900 * MB)]), sample(10))
    read: list[datetime] = []

    def note(row: MachineSample, _context: object) -> None:
        read.append(row.at)

    event.listen(MachineSample, "load", note)
    try:
        with database.read() as session:
            (found,) = history.read_processes(
                session, since=NOON, until=NOON + timedelta(hours=1), max_points=480, limit=100
            )
    finally:
        event.remove(MachineSample, "load", note)

    assert (found.pid, found.is_alive) == (1, True)
    assert read == []


def test_a_range_has_a_length(client: Any) -> None:
    query = {"since": NOON.isoformat(), "until": NOON.isoformat()}

    answer = client.get("/api/v1/monitoring/machines", params=query)

    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_request")


def test_processes_of_a_job_and_growing_ones_are_found_with_the_jobs_name(
    client: Any, keep: Callable[..., None], make_job: Callable[..., str]
) -> None:
    job_id = make_job(name="a leak")
    keep(
        *(
            sample(60 * minute, processes=[
                process(1, 900 * MB),
                process(2, 500 * MB, job_id=job_id),
                process(3, (200 + 20 * minute) * MB, job_id=job_id),
            ])
            for minute in range(30)
        )
    )  # fmt: skip
    query = {"since": NOON.isoformat(), "until": (NOON + timedelta(hours=1)).isoformat()}

    own = client.get("/api/v1/monitoring/processes", params={**query, "job_id": job_id}).json()
    growing = client.get("/api/v1/monitoring/processes", params={**query, "is_growing": True}).json()
    first = client.get("/api/v1/monitoring/processes", params={**query, "limit": 1}).json()

    assert [(each["pid"], each["job_name"]) for each in own] == [(3, "a leak"), (2, "a leak")]
    assert [each["pid"] for each in growing] == [each["pid"] for each in first] == [3]


def test_of_a_long_range_few_samples_are_read(
    client: Any, keep: Callable[..., None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(history, "_READ_SAMPLES", 30)
    begun = NOON - timedelta(hours=1)
    keep(*(sample(-10 * number, cpu_percent=float(number % 13 == 0)) for number in range(361)))
    query = {"since": begun.isoformat(), "until": NOON.isoformat(), "max_points": 10}

    (node,) = client.get("/api/v1/monitoring/machines", params=query).json()["nodes"]

    # Each 13th, and the others not at all.
    assert len(node["at"]) in (10, 11)
    assert set(node["figures"]["cpu_percent"]) == {1.0}


def test_the_newest_looks_of_a_long_range_are_all_read(client: Any, keep: Callable[..., None]) -> None:
    begun = NOON - timedelta(hours=5)
    keep(*(sample(-60 * minute, processes=[process(1, 900 * MB)]) for minute in range(301)))
    query = {"since": begun.isoformat(), "until": NOON.isoformat(), "max_points": 60}

    (found,) = client.get("/api/v1/monitoring/processes", params=query).json()

    assert found["is_alive"]
    assert 50 <= len(found["memory"]) <= 60
    newest = [datetime.fromisoformat(at) for at in found["at"][-10:]]
    assert newest == [NOON - timedelta(minutes=back) for back in reversed(range(10))]


def test_moments_of_a_short_range_are_all_read() -> None:
    assert history.list_moments(NOON, NOON + timedelta(minutes=5), step_s=10, at_most=31) is None
    thinned = history.list_moments(NOON, NOON + timedelta(minutes=5), step_s=10, at_most=11)
    assert thinned == [NOON + timedelta(seconds=300 - 30 * back) for back in range(11)]


@pytest.mark.parametrize("moment", ["0001-01-01T00:30:00Z", "9999-12-31T23:59:59-05:00"])
@pytest.mark.parametrize("place", ["machines", "processes"])
def test_a_moment_beyond_the_calendar_is_refused(moment: str, place: str, client: Any) -> None:
    answer = client.get(f"/api/v1/monitoring/{place}", params={"until": moment})

    assert (answer.status_code, answer.json()["error"]) == (422, "invalid_request")
