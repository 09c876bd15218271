"""Curves over the API and in the store: exact when short, exact about extremes when long."""

import math
import random
from collections.abc import Callable
from typing import Any

from fastapi.testclient import TestClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import select
from trellis_api.core.database import Database
from trellis_api.jobs import repository
from trellis_api.jobs.metrics import query as metric_query
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.jobs.metrics.downsampling import reduce_points
from trellis_api.jobs.metrics.models import ROLLUP_STEPS, metric_points, metric_rollups


def write(database: Database, job_id: str, *metrics: tuple[int, dict[str, float]]) -> None:
    with database.write() as session:
        job = repository.lock_job(session, job_id=job_id)
        assert job is not None
        metric_store.write(session, job=job, metrics=metrics)


def test_a_short_curve_comes_whole(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    job_id = make_job()
    write(database, job_id, *((step, {"loss": step / 2, "critic/score/mean": 1.0}) for step in range(1, 6)))

    response = client.get(f"/api/v1/jobs/{job_id}/metrics", params={"keys": "loss,unknown"})

    assert response.json()["series"] == [
        {
            "key": "loss",
            "steps": [1, 2, 3, 4, 5],
            "values": [0.5, 1.0, 1.5, 2.0, 2.5],
            "non_finite": [],
            "total_points": 5,
            "is_downsampled": False,
            "stretch_steps": 1,
        }
    ]


def test_what_is_no_number_is_a_gap_with_a_name(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    job_id = make_job()
    write(
        database,
        job_id,
        (1, {"loss": 1.0}),
        (2, {"loss": math.nan}),
        (3, {"loss": math.inf}),
        (4, {"loss": -math.inf}),
    )

    series = client.get(f"/api/v1/jobs/{job_id}/metrics").json()["series"][0]

    assert series["values"] == [1.0, None, None, None]
    assert series["non_finite"] == [
        {"step": 2, "value": "nan"},
        {"step": 3, "value": "inf"},
        {"step": 4, "value": "-inf"},
    ]
    keys = client.get(f"/api/v1/jobs/{job_id}/metric-keys").json()
    assert keys == [{"key": "loss", "last_step": 4, "last_value": None}]


def test_a_long_curve_keeps_its_spikes_and_its_one_nan(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    job_id = make_job()
    noise = random.Random(7)
    values = {step: noise.random() for step in range(20_000)}
    values[3_333], values[12_345], values[17_000] = 99.0, -99.0, math.nan
    write(database, job_id, *((step, {"loss": value}) for step, value in values.items()))

    series = client.get(f"/api/v1/jobs/{job_id}/metrics", params={"max_points": 100}).json()["series"][0]

    points = dict(zip(series["steps"], series["values"], strict=True))
    assert len(points) <= 100
    assert series["total_points"] == 20_000
    assert series["is_downsampled"]
    assert series["stretch_steps"] == 704
    assert (points[3_333], points[12_345], points[17_000]) == (99.0, -99.0, None)
    assert (min(points), max(points)) == (0, 19_999)
    assert all(values[step] == value for step, value in points.items() if value is not None)


def test_a_stretch_of_a_long_curve_comes_in_full_detail(
    client: TestClient, database: Database, make_job: Callable[..., str]
) -> None:
    job_id = make_job()
    write(database, job_id, *((step, {"loss": float(step)}) for step in range(5_000)))

    series = client.get(
        f"/api/v1/jobs/{job_id}/metrics", params={"from_step": 1_000, "to_step": 1_299, "max_points": 300}
    ).json()["series"][0]

    assert series["steps"] == list(range(1_000, 1_300))
    assert not series["is_downsampled"]


batches = st.lists(
    st.lists(
        st.tuples(
            st.integers(0, 400),
            st.dictionaries(
                st.sampled_from(["a", "b"]),
                st.floats(allow_nan=True, allow_infinity=True, width=32),
                min_size=1,
            ),
        ),
        min_size=1,
        max_size=40,
    ),
    min_size=1,
    max_size=6,
)


@given(batches=batches, max_points=st.integers(10, 50), cut=st.none() | st.integers(-1, 400))
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_store_agrees_with_a_plain_dictionary(
    database: Database,
    make_job: Callable[..., str],
    batches: list[list[tuple[int, dict[str, float]]]],
    max_points: int,
    cut: int | None,
) -> None:
    job_id = make_job()
    expected: dict[str, dict[int, float]] = {}
    for batch in batches:
        write(database, job_id, *batch)
        for step, values in batch:
            for key, value in values.items():
                expected.setdefault(key, {})[step] = value
    if cut is not None:
        with database.write() as session:
            job = repository.lock_job(session, job_id=job_id)
            assert job is not None
            metric_store.truncate(session, job=job, last_step=cut)
        expected = {key: {s: v for s, v in points.items() if s <= cut} for key, points in expected.items()}

    with database.read() as session:
        job = repository.find_job(session, job_id=job_id)
        assert job is not None
        whole = metric_query.read_curves(session, job=job, keys=None, max_points=20_000)
        short = metric_query.read_curves(session, job=job, keys=None, max_points=max_points)

    assert {curve.key: dict(curve.points) for curve in whole} == {
        key: {step: None if math.isnan(value) else value for step, value in sorted(points.items())}
        for key, points in expected.items()
    }
    for curve in short:
        numbers = [value for value in expected[curve.key].values() if math.isfinite(value)]
        kept = [value for _, value in curve.points if value is not None and math.isfinite(value)]
        assert len(curve.points) <= max_points
        assert curve.total_points == len(expected[curve.key])
        if numbers:
            assert (min(kept), max(kept)) == (min(numbers), max(numbers))


def test_every_complete_bucket_has_an_exact_rollup(database: Database, make_job: Callable[..., str]) -> None:
    job_id = make_job()
    write(database, job_id, *((step, {"a": math.sin(step)}) for step in range(0, 300, 3)))
    write(database, job_id, *((step, {"a": math.cos(step), "b": 1.0}) for step in range(100, 500)))

    with database.read() as session:
        connection = session.connection()
        stored: dict[int, list[Any]] = {}
        for row in connection.execute(select(metric_rollups).order_by(metric_rollups.c.bucket)):
            stored.setdefault(row.series_id, []).append(tuple(row)[1:])
        assert stored
        for series_id, rows in stored.items():
            points = connection.execute(
                select(metric_points.c.step, metric_points.c.value)
                .where(metric_points.c.series_id == series_id)
                .order_by(metric_points.c.step)
            )
            complete = [tuple(point) for point in points if point[0] < 499 // ROLLUP_STEPS * ROLLUP_STEPS]
            exact = [
                tuple(metric_store.as_row(bucket, series_id=series_id).values())[1:]
                for bucket in reduce_points(complete, width=ROLLUP_STEPS)
            ]
            assert rows == exact
