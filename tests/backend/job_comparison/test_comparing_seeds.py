"""Groups of seeds: which jobs belong together, and whether one setting is better than another."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
from fastapi.testclient import TestClient
from scipy import stats
from trellis_api.core.database import Database
from trellis_api.jobs import service
from trellis_api.jobs.metrics import store as metric_store
from trellis_api.jobs.models import Job
from trellis_api.sweeps.models import Sweep, SweepRun
from trellis_contracts.states import JobState

SWEEP = "swp_00000000000000000000000001"
LOSS, REWARD = "val/loss", "critic/score/mean"


def compare(client: TestClient, ids: Sequence[str], **query: Any) -> Any:
    response = client.get("/api/v1/jobs/compare/seeds", params={"ids": ",".join(ids), **query})
    assert response.status_code == 200, response.text
    return response.json()


def write(database: Database, job_id: str, key: str, *values: float) -> None:
    with database.write() as session:
        job = service.get_locked_job(session, job_id=job_id)
        metric_store.write(
            session, job=job, metrics=[(step, {key: value}) for step, value in enumerate(values, 1)]
        )


@pytest.fixture
def make_seeds(database: Database, make_job: Callable[..., str]) -> Callable[..., list[str]]:
    """Jobs of one setting, a seed for each value; returns their ids."""

    def make(rate: float, values: Sequence[float], *, key: str = REWARD, **changes: Any) -> list[str]:
        ids = []
        for seed, value in enumerate(values, 1):
            more = {"state": JobState.SUCCEEDED, "recipe": "grpo", "name": f"rate {rate}", **changes}
            ids.append(make_job(params={"learning_rate": rate}, seed=seed, **more))
            write(database, ids[-1], key, 0.0, value)
        return ids

    return make


def test_the_better_of_two_settings_comes_with_difference_interval_and_seeds(
    client: TestClient, make_seeds: Callable[..., list[str]]
) -> None:
    a, b = [0.50, 0.51, 0.52], [0.55, 0.53, 0.56]
    base, other = make_seeds(1e-6, a), make_seeds(2e-6, b)

    found = compare(client, [*base, *other])

    assert (found["metric"], found["mode"], found["take"], found["method"]) == (
        REWARD, "max", "last", "welch_t"
    )  # fmt: skip
    assert [(group["job_ids"], group["seed_count"]) for group in found["groups"]] == [(base, 3), (other, 3)]
    assert found["groups"][1]["mean"] == pytest.approx(sum(b) / 3)
    (row,) = found["differences"]
    expected = stats.ttest_ind(b, a, equal_var=False)
    bounds = expected.confidence_interval()
    assert (row["group"], row["verdict"], found["baseline"]) == (1, "better", 0)
    assert row["difference"] == pytest.approx(sum(b) / 3 - sum(a) / 3)
    assert (row["low"], row["high"]) == pytest.approx((bounds.low, bounds.high))
    assert row["p_adjusted"] == row["p_value"] == pytest.approx(expected.pvalue)
    assert found["values"] == dict(zip([*base, *other], [*a, *b], strict=True))
    assert found["best"] == {"job_id": other[2], "value": 0.56, "step": 2}
    turned = compare(client, [*base, *other], baseline=other[1])
    assert (turned["baseline"], turned["differences"][0]["verdict"]) == (1, "worse")


def test_less_is_better_of_a_loss_and_its_best_value_counts(
    client: TestClient, make_seeds: Callable[..., list[str]], database: Database
) -> None:
    base = make_seeds(1e-6, [2.0, 2.1, 2.05], key=LOSS, recipe="sft")
    other = make_seeds(2e-6, [1.5, 1.45, 1.55], key=LOSS, recipe="sft")
    for job_id in (*base, *other):
        with database.write() as session:
            job = service.get_locked_job(session, job_id=job_id)
            metric_store.write(session, job=job, metrics=[(1, {LOSS: 9.0}), (3, {LOSS: 8.0})])

    found = compare(client, [*base, *other])

    assert (found["metric"], found["mode"], found["take"]) == (LOSS, "min", "best")
    assert found["differences"][0]["verdict"] == "better"
    assert found["groups"][1]["mean"] == pytest.approx(1.5)
    last = compare(client, [*base, *other], take="last")["groups"]
    assert [group["mean"] for group in last] == [8.0, 8.0]


def test_single_seeds_are_compared_without_a_verdict(
    client: TestClient, make_seeds: Callable[..., list[str]]
) -> None:
    (a,), (b,) = make_seeds(1e-6, [0.5]), make_seeds(2e-6, [0.9])

    (row,) = compare(client, [a, b])["differences"]

    assert (row["verdict"], row["low"], row["p_value"]) == ("too_few_seeds", None, None)
    assert row["difference"] == pytest.approx(0.4)


def test_runs_of_one_seed_are_one_value_and_equal_values_have_no_interval(
    client: TestClient, make_seeds: Callable[..., list[str]], make_job: Callable[..., str], database: Database
) -> None:
    base = make_seeds(1e-6, [0.5])
    twin = make_job(params={"learning_rate": 1e-6}, seed=1, recipe="grpo", state=JobState.SUCCEEDED)
    write(database, twin, REWARD, 0.7)
    other, third = make_seeds(2e-6, [0.5, 0.5]), make_seeds(3e-6, [1.0, 1.0])

    found = compare(client, [*base, twin, *other, *third], baseline=other[0])

    assert (found["groups"][0]["seed_count"], found["groups"][0]["mean"]) == (1, pytest.approx(0.6))
    assert [row["verdict"] for row in found["differences"]] == ["too_few_seeds", "no_spread"]


def test_several_settings_are_judged_together(
    client: TestClient, make_seeds: Callable[..., list[str]]
) -> None:
    values = [[0.50, 0.52, 0.54], [0.56, 0.58, 0.57], [0.51, 0.53, 0.55], [0.50, 0.53, 0.52]]
    ids = [make_seeds(number * 1e-6, each) for number, each in enumerate(values, 1)]

    rows = compare(client, [job for own in ids for job in own])["differences"]

    assert rows[0]["p_value"] < 0.05 < rows[0]["p_adjusted"] == pytest.approx(3 * rows[0]["p_value"])
    assert [row["verdict"] for row in rows] == ["unclear"] * 3


def test_what_has_not_finished_is_left_out_beside_what_has(
    client: TestClient, make_seeds: Callable[..., list[str]]
) -> None:
    done = make_seeds(1e-6, [0.5, 0.6])
    (running,) = make_seeds(1e-6, [0.1], state=JobState.RUNNING)
    alone = make_seeds(2e-6, [0.3, 0.4], state=JobState.STOPPED)

    groups = compare(client, [*done, running, *alone])["groups"]

    assert [(group["seed_count"], group["left_out"]) for group in groups] == [(2, [running]), (2, [])]


def test_runs_of_one_trial_of_a_sweep_are_a_group(
    client: TestClient, make_seeds: Callable[..., list[str]], database: Database
) -> None:
    ids = [*make_seeds(1e-6, [0.5]), *make_seeds(2e-6, [0.6])]
    other = make_seeds(3e-6, [0.9])
    with database.write() as session:
        session.add(Sweep(id=SWEEP, name="rates", recipe="grpo", document={}))
        session.flush()
        for index, job_id in enumerate([*ids, *other]):
            trial = 2 if job_id in other else 1
            session.add(SweepRun(sweep_id=SWEEP, index=index, trial=trial, seed=1, values={}, job_id=job_id))
            job = session.get_one(Job, job_id)
            job.sweep_id, job.group = SWEEP, "rates · 1"  # somebody has labelled the third like the others

    found = compare(client, [*ids, *other])

    assert [group["job_ids"] for group in found["groups"]] == [ids, other]
    assert [group["name"] for group in found["groups"]] == ["rate 1e-06", "rate 3e-06"]
    assert compare(client, ids)["groups"][0]["name"] == "rates · 1"
    assert found["metric"] == REWARD


@pytest.mark.parametrize("asked", [{}, {"metric": "val/edit_distance"}])
def test_the_direction_that_a_job_states_for_its_metric_is_kept(
    client: TestClient, make_seeds: Callable[..., list[str]], database: Database, asked: dict[str, str]
) -> None:
    key = "val/edit_distance"
    base, other = make_seeds(1e-6, [9.0, 9.1, 9.2], key=key), make_seeds(2e-6, [3.0, 3.1, 3.2], key=key)
    with database.write() as session:
        for job_id in base:
            session.get_one(Job, job_id).keep_best_by = {"metric": key, "mode": "min"}
        for job_id in (*base, *other):
            job = service.get_locked_job(session, job_id=job_id)
            metric_store.write(session, job=job, metrics=[(1, {key: 20.0}), (3, {key: 20.0})])

    found = compare(client, [*base, *other], **asked)

    assert (found["mode"], found["take"], found["differences"][0]["verdict"]) == ("min", "best", "better")
    assert found["groups"][1]["mean"] == pytest.approx(3.1)
    assert found["best"] == {"job_id": other[0], "value": 3.0, "step": 2}


def test_seeds_that_failed_are_named_beside_those_that_got_through(
    client: TestClient, make_seeds: Callable[..., list[str]]
) -> None:
    done = make_seeds(1e-6, [0.5, 0.6])
    failed = make_seeds(1e-6, [0.1, 0.2, 0.1], state=JobState.FAILED)

    (group,) = compare(client, [*done, *failed])["groups"]

    assert (group["seed_count"], group["failed"]) == (2, failed)


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (("lr 1e-6 seed 1", "lr 1e-6 seed 2"), "lr 1e-6"),
        (("grpo_s1", "grpo_s2"), "grpo"),
        (("run-10", "run-11"), "run"),
        (("base", "base (2)"), "base"),
        (("one", "two"), "one"),
        (("seed 1", "seed 2"), "seed 1"),
    ],
)
def test_a_group_has_the_words_that_all_names_begin_with(
    client: TestClient, make_job: Callable[..., str], names: tuple[str, str], expected: str
) -> None:
    ids = [make_job(name=name, seed=seed) for seed, name in enumerate(names)]

    assert [group["name"] for group in compare(client, ids)["groups"]] == [expected]


def test_jobs_without_a_common_metric_have_no_statement(
    client: TestClient, make_job: Callable[..., str], database: Database
) -> None:
    a, b = make_job(params={"x": 1}), make_job(params={"x": 2})
    write(database, a, "own", 1.0)

    found = compare(client, [a, b])

    assert (found["metric"], found["differences"], found["best"]) == (None, [], None)
    assert compare(client, [a, b], metric="own")["best"]["job_id"] == a


def test_a_baseline_from_outside_is_refused(client: TestClient, make_job: Callable[..., str]) -> None:
    response = client.get("/api/v1/jobs/compare/seeds", params={"ids": make_job(), "baseline": "job_x"})

    assert (response.status_code, response.json()["error"]) == (422, "invalid_comparison")


def test_the_best_run_is_one_that_succeeded_as_long_as_there_is_one(
    client: TestClient, make_seeds: Callable[..., list[str]]
) -> None:
    (crashed,) = make_seeds(1e-6, [0.9], state=JobState.CRASHED)
    (done,) = make_seeds(2e-6, [0.5])
    (running,) = make_seeds(3e-6, [0.7], state=JobState.RUNNING)

    assert compare(client, [crashed, done, running])["best"]["job_id"] == done
    assert compare(client, [crashed, running])["best"]["job_id"] == crashed


def test_neither_more_nor_less_entropy_is_better_unless_a_job_says_so(
    client: TestClient, make_seeds: Callable[..., list[str]]
) -> None:
    key = "actor/entropy"
    base = make_seeds(1e-6, [0.50, 0.51, 0.52], key=key)
    other = make_seeds(2e-6, [0.75, 0.73, 0.76], key=key)
    stated = make_seeds(3e-6, [0.1], key=key, keep_best_by={"metric": key, "mode": "min"})

    found = compare(client, [*base, *other], metric=key)
    table = client.get("/api/v1/jobs/compare", params={"ids": ",".join(base), "keys": [key, REWARD]}).json()
    ids = ",".join([*base, *stated])
    told = client.get("/api/v1/jobs/compare", params={"ids": ids, "keys": [key]}).json()
    directed = compare(client, [*base, *other, *stated], metric=key)

    assert (found["mode"], found["differences"][0]["verdict"], found["best"]) == (None, "different", None)
    assert [(row["key"], row["mode"]) for row in table["metrics"]] == [(key, None)]
    assert [row["mode"] for row in told["metrics"]] == ["min"]
    assert (directed["mode"], directed["differences"][0]["verdict"]) == ("min", "worse")
