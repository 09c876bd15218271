"""The clock of a run: sums over all of its steps, however few of them are told."""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from itertools import accumulate
from typing import Any

import pytest
from fastapi.testclient import TestClient
from sqlalchemy import update
from trellis_api.core.database import Database
from trellis_api.jobs import service
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.jobs.metrics.models import metric_rollups
from trellis_api.jobs.timing import store as timing_store

SECONDS, TOKENS = "timing_s/step", "perf/total_num_tokens"
START = datetime(2026, 1, 1, tzinfo=UTC)


def write(
    database: Database,
    job_id: str,
    metrics: Mapping[int, dict[str, float]],
    *,
    moments: Mapping[int, float] | None = None,
    attempt: int = 1,
) -> None:
    """Write metrics by step, and the seconds since the start at which the steps ended."""
    with database.write() as session:
        job = service.get_locked_job(session, job_id=job_id)
        job.attempt = attempt
        metric_store.write(session, job=job, metrics=list(metrics.items()))
        times = [(step, START.timestamp() + after) for step, after in (moments or {}).items()]
        timing_store.write_times(session, job_id=job_id, attempt=attempt, times=times)


def read(client: TestClient, job_id: str, **query: Any) -> Any:
    asked = {"keys": SECONDS, "clock": "true", **query}
    return client.get(f"/api/v1/jobs/{job_id}/metrics", params=asked).json()["clock"]


def after(moment: str) -> float:
    return (datetime.fromisoformat(moment) - START).total_seconds()


@pytest.mark.smoke
@pytest.mark.parametrize("steps", [50, 1_500, 20_000])
@pytest.mark.parametrize("first", [0, 1])
def test_spikes_count_as_often_as_they_are(
    client: TestClient, database: Database, make_job: Callable[..., str], steps: int, first: int
) -> None:
    job_id = make_job()
    seconds = {step: 31.0 if step % 50 == 0 else 1.0 for step in range(first, first + steps)}
    sums = dict(zip(seconds, accumulate(seconds.values()), strict=True))
    write(
        database,
        job_id,
        {step: {SECONDS: each, TOKENS: 1000.0 + step % 7} for step, each in seconds.items()},
        moments=sums,
    )

    clock = read(client, job_id, max_points=100)
    part = read(client, job_id, max_points=100, from_step=steps // 2, to_step=steps // 2 + 40)

    assert len(clock["steps"]) <= 100
    assert (clock["steps"][0], clock["steps"][-1]) == (first, first + steps - 1)
    tokens = dict(zip(seconds, accumulate(1000.0 + step % 7 for step in seconds), strict=True))
    # Within a stretch of a long run, the first step of all has its share of it.
    for told in (clock, part) if steps < 100 else ({key: own[1:] for key, own in clock.items()}, part):
        assert told["elapsed_s"] == pytest.approx([sums[step] for step in told["steps"]])
        assert told["tokens"] == pytest.approx([tokens[step] for step in told["steps"]])
        assert [after(at) for at in told["at"]] == pytest.approx([sums[step] for step in told["steps"]])
    assert part["steps"] == list(range(steps // 2, min(steps // 2 + 40, first + steps - 1) + 1))


def test_a_clock_tells_both_ends_of_a_stop(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    job_id, stop_s = make_job(), 8 * 3600.0
    steps = {step: {SECONDS: 1.0} for step in range(1, 10_001)}
    before = {step: float(step) for step in range(1, 6_001)}
    write(database, job_id, {step: steps[step] for step in before}, moments=before)
    later = {step: step + stop_s for step in range(5_001, 10_001)}
    write(database, job_id, {step: steps[step] for step in later}, moments=later, attempt=2)

    clock = read(client, job_id, max_points=50)

    assert len(clock["steps"]) <= 50
    moments = {step: after(at) for step, at in zip(clock["steps"], clock["at"], strict=True)}
    elapsed = dict(zip(clock["steps"], clock["elapsed_s"], strict=True))
    assert (moments[5_000], moments[5_001]) == (5_000.0, 5_001.0 + stop_s)
    assert elapsed[5_001] == pytest.approx(5_001)


def test_a_trainer_that_tells_every_tenth_step_took_all_of_them(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    job_id = make_job()
    told = range(10, 10_001, 10)
    write(
        database,
        job_id,
        {step: {SECONDS: 2.0, "num_tokens": step * 100.0} for step in told},
        moments={step: step * 2.0 for step in told},
    )

    long, short = read(client, job_id, max_points=60), read(client, job_id, max_points=20_000)

    for clock in (long, short):
        assert clock["steps"][-1] == 10_000
        assert set(clock["steps"]) <= set(told)
        assert clock["elapsed_s"][-1] == pytest.approx(20_000)
        assert clock["tokens"] == [step * 100.0 for step in clock["steps"]]
        assert [after(at) for at in clock["at"]] == [step * 2.0 for step in clock["steps"]]
    assert (len(long["steps"]) <= 60, len(short["steps"])) == (True, len(told))
    assert short["elapsed_s"] == pytest.approx([step * 2.0 for step in told])


def test_rollups_without_a_sum_and_steps_without_a_number_are_summed_from_the_points(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    job_id = make_job()
    seconds = {step: float("nan") if step == 700 else 3.0 for step in range(1, 20_001)}
    write(database, job_id, {step: {SECONDS: each} for step, each in seconds.items()})
    with database.write() as session:
        rollups = metric_rollups.c
        session.connection().execute(update(metric_rollups).where(rollups.bucket < 50).values(sum=None))

    clock = read(client, job_id, max_points=100)

    assert clock["elapsed_s"] == pytest.approx([step * 3.0 for step in clock["steps"]])
    assert (clock["at"], clock["tokens"]) == (None, None)


def test_a_run_that_reports_neither_has_no_clock_and_none_is_read_unasked(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    silent, timed = make_job(), make_job()
    write(database, silent, {1: {"loss": 1.0}})
    write(database, timed, {1: {SECONDS: 1.0}}, moments={1: 5.0})

    assert read(client, silent) is None
    assert read(client, timed, clock="false") is None
    assert after(read(client, timed)["at"][0]) == 5.0


def test_compared_runs_have_their_clocks_beside_their_curves(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    a, b = make_job(), make_job()
    for job_id, each in ((a, 1.0), (b, 2.0)):
        write(database, job_id, {step: {SECONDS: each, "loss": 1.0} for step in range(1, 5_001)})
    query = {"ids": f"{b},{a}", "keys": "loss", "max_points": 50, "clock": "true"}

    whole = client.get("/api/v1/jobs/compare/metrics", params=query).json()["runs"]
    part = client.get(
        "/api/v1/jobs/compare/metrics", params={**query, "from_step": 2_000, "to_step": 2_010}
    ).json()["runs"]

    ends = [(run["job_id"], run["clock"]["steps"][-1], run["clock"]["elapsed_s"][-1]) for run in whole]
    assert ends == [(b, 5_000, pytest.approx(10_000)), (a, 5_000, pytest.approx(5_000))]
    assert [run["series"][0]["steps"] for run in part] == [list(range(2_000, 2_011))] * 2
    assert part[1]["clock"]["elapsed_s"] == pytest.approx([float(step) for step in range(2_000, 2_011)])


def test_no_clock_takes_no_query(
    client: TestClient, make_job: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[object] = []
    monkeypatch.setattr(
        "trellis_api.jobs.timing.clock.headline.find_many", lambda *_, **given: asked.append(given)
    )

    assert read(client, make_job(), clock="false") is None
    assert asked == []
