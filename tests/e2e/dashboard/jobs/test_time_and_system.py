"""A run's time and its machines, as a person sees them on the job page and on the overview."""

import random
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlalchemy import delete
from sqlmodel import col
from trellis_api.core.database import Database
from trellis_api.jobs.models import Attempt
from trellis_api.monitoring.models import MachineSample
from trellis_testing.accessibility import find_violations, tell
from trellis_testing.reporting_jobs import ReportingJob

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
GIB = 1024**3
MINUTES = 20
NODE = "node-a"


def _grid(moment: datetime) -> datetime:
    return datetime.fromtimestamp(moment.timestamp() // 60 * 60, UTC)


def _sample_machine(database: Database, job_id: str, until: datetime) -> None:
    """Half an hour of a node with one GPU, and a process of the job that grows."""
    draw = random.Random(7)
    begins = _grid(until) - timedelta(minutes=MINUTES + 10)
    with database.write() as session:
        # The test before this one had the same node.
        session.exec(delete(MachineSample).where(col(MachineSample.node) == NODE))
        for number in range(6 * (MINUTES + 10)):
            at = begins + timedelta(seconds=10 * number)
            process = {
                "pid": 4711,
                "started_at": 1.0,
                "name": "ray::WorkerDict",
                "job_id": job_id,
                "memory_bytes": 2 * GIB + number * 8 * 1024**2,
            }
            figures = {
                "cpu_percent": 40 + 30 * draw.random(),
                "memory_used_bytes": (10 + number / 60) * GIB,
                "memory_total_bytes": 24.0 * GIB,
                "disk_used_bytes": 60.0 * GIB,
                "disk_total_bytes": 200.0 * GIB,
                "disk_read_bytes_per_s": 4e6 * draw.random(),
                "disk_written_bytes_per_s": 9e6 * draw.random(),
                "network_received_bytes_per_s": 2e5 * draw.random(),
                "network_sent_bytes_per_s": 1e5 * draw.random(),
                "gpu0_utilization_percent": 100 * draw.random(),
                "gpu0_memory_used_bytes": 70.0 * GIB,
                "gpu0_memory_total_bytes": 80.0 * GIB,
                "gpu0_power_watts": 300 + 300 * draw.random(),
            }
            processes = [process] if number % 6 == 0 else []
            session.add(MachineSample(node=NODE, at=at, figures=figures, counters={}, processes=processes))


def _step(step: int, at: datetime) -> list[dict[str, Any]]:
    seconds = {
        "gen": 18.0,
        "old_log_prob": 2.0,
        "ref": 2.5,
        "adv": 0.1,
        "update_actor": 5.0,
        "update_weights": 1.4,
    }
    values = {f"timing_s/{phase}": took * (1 + 0.01 * step) for phase, took in seconds.items()}
    values["timing_s/step"] = 1.02 * sum(values.values())
    values |= {"timing_s/testing": 6.0} if step % 10 == 0 else {}
    values |= {
        "response_time_s/median": 4.0,
        "response_time_s/max": 16.8,
        "response_time_s/tail_fraction": 0.55,
    }
    spans, begins = [], 0.0
    for phase, took in seconds.items():
        spans.append({"phase": phase, "start_s": begins, "end_s": begins + took})
        begins += took
    draw = random.Random(step)
    ends = sorted(min(17.8, 1 + draw.expovariate(0.3)) for _ in range(64))
    responses = [
        {
            "group": f"{step}-{number // 8}",
            "start_s": 0.05,
            "end_s": end,
            "tokens": int(60 * end),
            "parts": [
                _span("queued", 0.05, 0.3),
                _span("generate", 0.3, end),
                _span("reward", end, end + 0.1),
            ],
        }
        for number, end in enumerate(ends)
    ]
    lanes = [
        {"name": "trainer", "spans": spans, "place": _place(101)},
        {
            "name": "worker 0",
            "spans": [_span("log_prob", 18.1, 19.9), _span("update_actor", 22.7, 27.5)],
            "place": _place(102, "0"),
        },
        {"name": "engine 0", "spans": [_span("generate", 0.05, ends[-1])], "place": _place(103, "1")},
        {"name": "agent_loop 0", "spans": [_span("responses", 0.05, ends[-1] + 0.1)], "place": _place(104)},
    ]
    event = {"time": at.isoformat(), "step": step}
    return [
        {"kind": "metrics", "values": values, **event},
        {
            "kind": "timeline",
            "started_at": (at - timedelta(seconds=begins)).isoformat(),
            "duration_s": begins,
            "lanes": lanes,
            "responses": responses,
            "response_count": len(responses),
            "engines": [_load(ends)],
            **event,
        },
    ]


def _span(phase: str, start: float, end: float) -> dict[str, Any]:
    return {"phase": phase, "start_s": start, "end_s": end}


def _place(pid: int, *gpus: str) -> dict[str, Any]:
    return {"node": NODE, "pid": pid, "gpus": list(gpus)}


def _load(ends: list[float]) -> dict[str, Any]:
    """An engine that runs 48 requests at a time; the others wait."""
    left = [len(ends) - place for place in range(len(ends) + 1)]
    return {
        "name": "engine 0",
        "at_s": [0.05, *ends],
        "running": [min(48, count) for count in left],
        "waiting": [max(0, count - 48) for count in left],
        "kv_use": [min(48, count) / 50 for count in left],
    }


@pytest.fixture
def run(database: Database, launch: Callable[..., ReportingJob]) -> ReportingJob:
    """A run of twenty minutes with a step every half minute."""
    job = launch("where the time goes")
    until = datetime.now(UTC)
    begins = until - timedelta(minutes=MINUTES)
    for step in range(1, 2 * MINUTES):
        job.send(*_step(step, begins + timedelta(seconds=30 * step)))
    with database.write() as session:
        attempt = session.get(Attempt, (job.id, 1))
        assert attempt is not None
        attempt.started_at = begins
    _sample_machine(database, job.id, until)
    return job


def test_a_person_sees_what_limits_a_run_and_what_its_machines_did(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    run: ReportingJob,
) -> None:
    page = logged_in
    page.goto(f"{dashboard.url}/jobs/{run.id}?tab=time")

    expect(page.locator("[data-test=limit]")).to_contain_text("Generation takes")
    expect(page.locator("[data-test=limit]")).to_contain_text("The longest response takes 4.2x")
    expect(page.locator("[data-phase=update_actor]")).to_contain_text("Policy update")
    expect(page.locator("[data-test=lanes] .span")).to_have_count(10)
    worker = page.locator('[data-lane="worker 0"]')
    worker.focus()
    worker.press("End")
    expect(page.locator("[data-test=pointed]")).to_contain_text("Worker 0 · Policy update")
    page.get_by_text("Lanes as a table").click()
    expect(page.locator("[data-test=lane-table]")).to_contain_text(f"{NODE}, GPU 0")
    expect(page.locator("[data-test=engine]")).to_contain_text("max. 48 running, 16 waiting")
    page.locator("[data-test=phase-stack] .pick").nth(4).click()
    expect(page.get_by_role("heading", name="Lanes of step 5")).to_be_visible()

    page.get_by_role("tab", name="System").click()
    expect(page.locator("[data-chart=gpuPower]")).to_be_visible()
    expect(page.locator("[data-test=process]")).to_contain_text("ray::WorkerDict")
    page.get_by_text("Step", exact=True).click()
    expect(page.locator("[data-chart=cpu] canvas")).to_be_visible()

    page.goto(dashboard.url)
    page.get_by_role("button", name="Details").click()
    expect(page.locator(f"[data-test=day] [data-node={NODE}] [data-row=gpu0]")).to_be_visible()
    expect(page.locator("[data-test=growing]")).to_contain_text("/h")
    page.locator("[data-test=growing] a").click()
    expect(page.get_by_role("tab", name="System")).to_have_attribute("aria-selected", "true")


def test_time_and_system_break_no_rule_and_fit_a_phone(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    run: ReportingJob,
) -> None:
    places = [f"{dashboard.url}/jobs/{run.id}?tab={tab}" for tab in ("time", "system")]

    found = find_violations(logged_in, places)

    assert not found, tell(found)
    logged_in.set_viewport_size({"width": 390, "height": 844})
    for place, shown in zip(places, ("[data-test=lanes]", "[data-chart=cpu]"), strict=True):
        logged_in.goto(place)
        expect(logged_in.locator(shown)).to_be_visible()
        assert logged_in.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
