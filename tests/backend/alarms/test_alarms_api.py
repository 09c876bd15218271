"""Alarms as clients see them: raised by what a run reports, kept, cleared, counted and told."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.jobs import repository, service
from trellis_api.jobs.alarms import service as alarms
from trellis_api.jobs.alarms import stall
from trellis_api.jobs.events import service as events
from trellis_api.jobs.models import Checkpoint, JobConfiguration
from trellis_contracts.states import JobState

NAN = "NaN"


class Run:
    """A run that reports metrics, batch by batch."""

    def __init__(self, client: TestClient, launched: Any) -> None:
        self.client, self.launched, self.sequence = client, launched, 0

    @property
    def job_id(self) -> str:
        return str(self.launched.job_id)

    def report(self, *steps: tuple[int, dict[str, Any]], again: bool = False) -> None:
        found = [
            {
                "kind": "metrics",
                "time": f"2026-01-02T03:{step // 60:02}:{step % 60:02}Z",
                "step": step,
                "values": values,
            }
            for step, values in steps
        ]
        self.send(*found, again=again)

    def send(self, *found: dict[str, Any], again: bool = False) -> None:
        self.sequence += not again
        batch = {"attempt": self.launched.attempt, "sequence": self.sequence, "events": list(found)}
        path = f"/api/v1/ingest/jobs/{self.job_id}/batches"
        answer = self.client.post(path, json=batch, headers=self.launched.headers)
        assert answer.status_code == 200, answer.text

    def read(self) -> dict[str, Any]:
        answer = self.client.get(f"/api/v1/jobs/{self.job_id}")
        assert answer.status_code == 200, answer.text
        body: dict[str, Any] = answer.json()
        return body


@pytest.fixture
def run(client: TestClient, make_launched: Callable[..., Any]) -> Run:
    return Run(client, make_launched())


def told(database: Database, job_id: str) -> list[tuple[str, bool]]:
    """What the stream said of alarms."""
    with database.read() as session:
        rows = events.list_events(session, job_id=job_id, after=0, limit=1000)
        return [(row.payload["code"], row.payload["is_active"]) for row in rows if row.kind == "alarm"]


def test_an_alarm_is_raised_by_a_batch_with_its_advice(run: Run, database: Database) -> None:
    run.report((1, {"actor/pg_loss": 0.1}), (2, {"actor/pg_loss": NAN}))

    job = run.read()

    (alarm,) = job["alarms"]
    assert (job["alarm_count"], job["worst_alarm"]) == (1, "critical")
    assert alarm["code"] == "loss_not_finite"
    assert (alarm["step"], alarm["first_step"], alarm["last_step"]) == (2, 2, 2)
    assert alarm["metric"] == "actor/pg_loss"
    assert alarm["value"] is None
    assert "learning_rate" in alarm["advice"]["en"]
    assert "learning_rate" in alarm["advice"]["zh"]
    assert job["state"] == "running"
    assert told(database, run.job_id) == [("loss_not_finite", True)]


def test_a_kl_that_is_no_number_is_said_without_a_value(run: Run, database: Database) -> None:
    run.report(*((step, {"actor/ppo_kl": 0.01}) for step in (1, 2)))
    run.report((3, {"actor/ppo_kl": NAN}), (4, {"actor/ppo_kl": "Infinity"}))

    (alarm,) = run.read()["alarms"]

    assert (alarm["code"], alarm["severity"], alarm["metric"]) == ("kl_exploding", "critical", "actor/ppo_kl")
    assert (alarm["first_step"], alarm["last_step"]) == (3, 4)
    assert (alarm["value"], alarm["threshold"]) == (None, None)
    assert told(database, run.job_id) == [("kl_exploding", True)]


def test_an_alarm_goes_on_over_batches_and_clears(run: Run, database: Database) -> None:
    for step in range(1, 8):
        run.report((step, {"critic/score/max": 0.0, "critic/score/min": 0.0}))
    standing = run.read()["alarms"]
    run.report((8, {"critic/score/max": 1.0, "critic/score/min": 0.0}))
    over = run.read()

    assert [(a["step"], a["first_step"], a["last_step"], a["is_active"]) for a in standing] == [
        (5, 1, 7, True)
    ]
    assert [(a["last_step"], a["is_active"]) for a in over["alarms"]] == [(7, False)]
    assert over["alarms"][0]["cleared_at"] is not None
    assert (over["alarm_count"], over["worst_alarm"]) == (0, None)
    assert told(database, run.job_id) == [("rewards_all_zero", True), ("rewards_all_zero", False)]


def test_a_repeated_batch_raises_nothing_twice(run: Run, database: Database) -> None:
    run.report((1, {"loss": NAN}))
    run.report((1, {"loss": NAN}), again=True)

    assert told(database, run.job_id) == [("loss_not_finite", True)]


def test_an_alarm_that_comes_again_is_the_same_row_and_is_told_again(run: Run, database: Database) -> None:
    run.report((1, {"loss": NAN}), *((step, {"loss": 1.0}) for step in (2, 3, 4)), (5, {"loss": NAN}))

    (alarm,) = run.read()["alarms"]

    assert (alarm["step"], alarm["first_step"], alarm["is_active"]) == (5, 1, True)
    assert alarm["cleared_at"] is None
    assert told(database, run.job_id) == [
        ("loss_not_finite", True),
        ("loss_not_finite", False),
        ("loss_not_finite", True),
    ]


def test_jobs_are_listed_by_their_alarms(
    client: TestClient, run: Run, make_launched: Callable[..., Any]
) -> None:
    quiet = Run(client, make_launched())
    quiet.report((1, {"loss": 1.0}))
    run.report((1, {"loss": NAN}), *((step, {"response_length/clip_ratio": 1.0}) for step in range(1, 6)))

    def ids(**params: Any) -> list[str]:
        return [job["id"] for job in client.get("/api/v1/jobs", params=params).json()["items"]]

    (listed,) = [job for job in client.get("/api/v1/jobs").json()["items"] if job["id"] == run.job_id]
    assert ids(has_alarms=True) == [run.job_id]
    assert ids(has_alarms=False) == [quiet.job_id]
    assert (listed["alarm_count"], listed["worst_alarm"], listed["alarms"]) == (2, "critical", [])


def test_alarms_are_counted_on_the_dashboard_and_for_prometheus(client: TestClient, run: Run) -> None:
    run.report((1, {"loss": NAN}))

    dashboard = client.get("/api/v1/monitoring/dashboard").json()
    figures = client.get("/metrics").text

    assert dashboard["alarms"] == [{"code": "loss_not_finite", "severity": "critical", "jobs": 1}]
    assert 'trellis_job_alarms{code="loss_not_finite",severity="critical"} 1.0' in figures


def resume(database: Database, settings: Settings, job_id: str, *, step: int) -> None:
    """Continue behind a checkpoint, as if the new attempt had been launched."""
    folder = settings.checkpoint_dir(job_id) / f"global_step_{step}"
    folder.mkdir(parents=True)
    with database.write() as session:
        path = str(folder.relative_to(settings.data_root))
        session.add(
            Checkpoint(job_id=job_id, step=step, attempt=1, path=path, size_bytes=1, created_at=utc_now())
        )
        session.flush()
        service.settle(session, job_id=job_id, attempt=1, state=JobState.FAILED)
        service.resume(session, job_id=job_id, data_root=settings.data_root, checkpoint_step=step)


def launch_again(client: TestClient, run: Run, database: Database) -> Run:
    """The attempt that was queued, claimed."""
    with database.write() as session:
        claim = service.claim_for_launch(session, job_id=run.job_id)
    assert claim is not None
    return Run(client, type(run.launched)(run.job_id, claim.token, claim.job.attempt))


def test_what_an_attempt_found_is_history_for_the_next(
    client: TestClient, run: Run, database: Database, settings: Settings
) -> None:
    entropy = [*[0.6] * 10, *[0.001] * 10]
    run.report(*((step, {"actor/entropy": value}) for step, value in enumerate(entropy)))
    assert run.read()["alarm_count"] == 1
    resume(database, settings, run.job_id, step=9)
    after_resume = run.read()
    second = launch_again(client, run, database)
    # The level that it is compared with is that of the steps before the checkpoint.
    for step in range(10, 15):
        second.report((step, {"actor/entropy": 0.001}))

    again = second.read()

    assert (after_resume["alarm_count"], after_resume["alarms"][0]["is_active"]) == (0, False)
    assert [(a["attempt"], a["is_active"]) for a in again["alarms"]] == [(2, True), (1, False)]


@pytest.mark.parametrize("has_stalled", [False, True])
def test_what_is_known_outlives_an_attempt_that_reported_nothing(
    client: TestClient, run: Run, database: Database, settings: Settings, has_stalled: bool
) -> None:
    run.report(*((step, {"actor/entropy": 0.6}) for step in range(10)))
    resume(database, settings, run.job_id, step=9)
    second = launch_again(client, run, database)
    second.report()
    if has_stalled:
        assert wait(database, run.job_id, seconds=2 * stall.FIRST_STEP_FLOOR_S, phase="loading")
    with database.write() as session:
        service.settle(session, job_id=run.job_id, attempt=2, state=JobState.CRASHED)
        service.resume(session, job_id=run.job_id, data_root=settings.data_root, checkpoint_step=9)
    third = launch_again(client, run, database)

    # The level that it is compared with is that of the first attempt.
    for step in range(10, 15):
        third.report((step, {"actor/entropy": 0.001}))

    assert [alarm["code"] for alarm in third.read()["alarms"] if alarm["attempt"] == 3] == [
        "entropy_collapse"
    ]


def wait(database: Database, job_id: str, *, seconds: float, phase: str = "training") -> bool:
    """Let the newest step be that old, then look as the sweep does; whether the alarm was raised."""
    with database.write() as session:
        job = service.get_locked_job(session, job_id=job_id)
        attempt = repository.find_attempt(session, job_id=job_id, number=job.attempt)
        assert attempt is not None
        assert attempt.started_at is not None
        attempt.started_at -= timedelta(seconds=seconds)
        if attempt.watch is not None:
            attempt.watch = {**attempt.watch, "seen_at": attempt.watch["seen_at"] - seconds}
        job.phase = phase
        session.flush()
        expected = alarms.is_stalled_now(job, attempt)
        assert alarms.check_stalled(session, job=job, attempt=attempt) == expected
        return expected


def test_a_run_that_stands_still_is_told_and_the_next_step_clears_it(run: Run, database: Database) -> None:
    run.report(*((step, {"loss": 1.0}) for step in range(1, 6)))  # a second each

    early = wait(database, run.job_id, seconds=stall.FLOOR_S - 60)
    late = wait(database, run.job_id, seconds=120)
    twice = wait(database, run.job_id, seconds=120)
    standing = run.read()
    run.report((5, {"val/loss": 1.0}))
    still = run.read()["alarm_count"]
    run.report((6, {"loss": 1.0}))

    assert (early, late, twice) == (False, True, False)
    (alarm,) = standing["alarms"]
    assert (alarm["code"], alarm["severity"], alarm["step"]) == ("stalled", "critical", 5)
    assert alarm["value"] > alarm["threshold"] == stall.FLOOR_S
    assert still == 1
    assert run.read()["alarm_count"] == 0
    assert told(database, run.job_id) == [("stalled", True), ("stalled", False)]


def test_long_steps_and_long_phases_are_given_their_time(
    client: TestClient, make_launched: Callable[..., Any], database: Database
) -> None:
    slow, validating = Run(client, make_launched()), Run(client, make_launched())
    slow.report(*((step, {"loss": 1.0}) for step in range(100, 3000, 100)))
    slow.report(*((3000 + step, {"loss": 1.0}) for step in range(0, 600, 200)))
    validating.report(*((step, {"loss": 1.0}) for step in range(1, 6)))

    assert not wait(database, validating.job_id, seconds=stall.FLOOR_S * 4, phase="validating")
    assert wait(database, validating.job_id, seconds=stall.LONG_PHASE_FLOOR_S, phase="validating")


def test_a_run_before_its_first_step_is_given_an_hour(run: Run, database: Database) -> None:
    run.report()

    assert not wait(database, run.job_id, seconds=stall.FIRST_STEP_FLOOR_S - 60, phase="loading")
    assert wait(database, run.job_id, seconds=120, phase="loading")


def test_a_run_that_has_ended_does_not_stand_still(run: Run, database: Database) -> None:
    run.report((1, {"loss": NAN}), *((step, {"loss": 1.0}) for step in (2, 3)))
    wait(database, run.job_id, seconds=10 * stall.LONG_PHASE_FLOOR_S)
    assert run.read()["alarm_count"] == 2

    with database.write() as session:
        service.settle(session, job_id=run.job_id, attempt=1, state=JobState.FAILED)

    active = [alarm["code"] for alarm in run.read()["alarms"] if alarm["is_active"]]
    assert active == ["loss_not_finite"]


def test_an_alarm_about_what_is_written_has_an_example(run: Run) -> None:
    looping = "so it goes and " * 20
    rollouts = [
        {"group": "a", "prompt": "q", "response": text, "score": 1.0, "response_tokens": 80}
        for text in ("a plain answer with no word said before", looping, "another plain one")
    ]
    event = {"kind": "rollouts", "time": "2026-01-02T03:04:05Z", "step": 11, "rollouts": rollouts}
    run.send(event)

    run.report(
        *((step, {"training/repeated_ngram_fraction": 0.1 if step < 9 else 0.9}) for step in range(1, 12))
    )

    (alarm,) = run.read()["alarms"]
    assert alarm["code"] == "responses_repeat"
    shown = run.client.get(f"/api/v1/jobs/{run.job_id}/rollouts/{alarm['example_id']}").json()
    assert shown["response"] == looping


def test_an_agents_own_word_for_right_tells_the_example(run: Run) -> None:
    """Workflows say it under names of their own, and not of every response."""
    told: list[dict[str, float]] = [{"correct": 1.0}, {"correct": 0.0}, {"correct": 1.0}]
    rollouts = [
        {
            "group": "a",
            "prompt": "q",
            "response": f"{place}",
            "score": 0.9,
            "response_tokens": 8,
            "reward_parts": parts,
        }
        for place, parts in enumerate(told)
    ]
    run.send({"kind": "rollouts", "time": "2026-01-02T03:04:05Z", "step": 8, "rollouts": rollouts})

    run.report(*((step, {"training/format_only_fraction": 0.9}) for step in range(1, 9)))

    (alarm,) = run.read()["alarms"]
    shown = run.client.get(f"/api/v1/jobs/{run.job_id}/rollouts/{alarm['example_id']}").json()
    assert (alarm["code"], shown["response"]) == ("format_only", "1")


def test_the_example_of_a_trick_that_earns_is_the_trick(run: Run) -> None:
    def sample(group: str, response: str, score: float) -> dict[str, Any]:
        return {"group": group, "prompt": "q", "response": response, "score": score, "response_tokens": 0}

    own = [sample("p1", "The policy's best", 0.9)]
    tricks = [sample("empty", "", 0.0), sample("format_only", "<think>Hm.</think>", 0.8)]
    for step in (10, 20):
        values = {"probe/rollouts/mean": 0.9, "probe/format_only/mean": 0.8, "probe/empty/mean": 0.0}
        event = {"kind": "rollouts", "time": "2026-01-02T03:04:05Z", "step": step}
        run.send(event | {"rollouts": own}, event | {"split": "probe", "rollouts": tricks})
        run.report((step, values))

    (alarm,) = run.read()["alarms"]
    shown = run.client.get(f"/api/v1/jobs/{run.job_id}/rollouts/{alarm['example_id']}").json()
    assert (alarm["code"], alarm["metric"]) == ("probe_earns", "probe/format_only/mean")
    assert (shown["split"], shown["group"], shown["step"]) == ("probe", "format_only", 20)
    assert (shown["response"], shown["score"]) == ("<think>Hm.</think>", 0.8)


def test_of_several_tricks_that_earn_the_one_of_the_highest_score_is_shown_and_named(run: Run) -> None:
    means = {"empty": 0.75, "format_only": 0.8, "wrong": 0.95, "repeated": 0.97, "truncated": 0.9}
    values = {f"probe/{name}/mean": mean for name, mean in {**means, "rollouts": 0.9}.items()}
    scores = {**means, "rollouts": 1.0, "truncated": 1.0}
    rollouts = [
        {"group": name, "prompt": "q", "response": name, "score": score, "response_tokens": 1}
        for name, score in scores.items()
    ]
    event = {"kind": "rollouts", "time": "2026-01-02T03:04:05Z", "split": "probe", "rollouts": rollouts}
    for step in (10, 20):
        run.send(event | {"step": step})
        run.report((step, values))
    (raised,) = run.read()["alarms"]

    run.report((30, {**values, "probe/wrong/mean": 0.93}))

    (seen,) = run.read()["alarms"]
    shown = run.client.get(f"/api/v1/jobs/{run.job_id}/rollouts/{seen['example_id']}").json()
    assert (shown["group"], shown["step"]) == ("wrong", 20)
    assert (raised["metric"], raised["value"], raised["last_step"]) == ("probe/wrong/mean", 0.95, 20)
    assert (seen["metric"], seen["value"], seen["last_step"]) == ("probe/wrong/mean", 0.93, 30)


def test_a_mixtures_first_reward_tells_the_example(
    client: TestClient, make_launched: Callable[..., Any], database: Database
) -> None:
    """As the trainer counts it: what the first reward pays nothing for is paid for its format alone."""
    run = Run(client, make_launched())
    rewards: list[dict[str, Any]] = [
        {"name": name, "weight": 0.5, "options": {}} for name in ("code", "format")
    ]
    with database.write() as session:
        session.add(
            JobConfiguration(job_id=run.job_id, document={"composition": {"params": {"rewards": rewards}}})
        )
    told = [{"code": 1.0, "format": 1.0}, {"code": 0.0, "format": 1.0}, {"code": 0.5, "format": 1.0}]
    rollouts = [
        {
            "group": "a",
            "prompt": "q",
            "response": f"{place}",
            "score": 0.5 * sum(parts.values()),
            "response_tokens": 8,
            "reward_parts": parts,
        }
        for place, parts in enumerate(told)
    ]
    run.send({"kind": "rollouts", "time": "2026-01-02T03:04:05Z", "step": 8, "rollouts": rollouts})

    run.report(*((step, {"training/format_only_fraction": 0.9}) for step in range(1, 9)))

    (alarm,) = run.read()["alarms"]
    shown = run.client.get(f"/api/v1/jobs/{run.job_id}/rollouts/{alarm['example_id']}").json()
    assert (alarm["code"], shown["response"]) == ("format_only", "1")


def test_an_alarm_about_numbers_has_no_example(run: Run) -> None:
    run.report((1, {"actor/pg_loss": NAN}))

    (alarm,) = run.read()["alarms"]
    assert alarm["example_id"] is None
