"""What the page of a job tells of the evaluations that it asked for."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from sqlmodel import col, delete
from trellis_api.core.columns import utc_now
from trellis_api.core.database import Database
from trellis_api.jobs.evaluating.models import DueEvaluation, DueState
from trellis_api.jobs.models import Checkpoint, Job

pytestmark = pytest.mark.browser
STATES = [DueState.RECORDED, DueState.SKIPPED, DueState.FAILED, DueState.QUEUED, DueState.WAITING]
WORDS = ["evaluated", "not evaluated", "evaluation failed", "evaluating", "pending evaluation"]


@pytest.fixture
def measured(launch: Callable[..., Any], database: Database) -> Iterator[Any]:
    """A job that a score has ended, with a checkpoint in each state of its measuring."""
    job = launch("measured")
    job.settle("stopped", reason="Stopped early.", cause="early_stopped")
    stopped = {
        "label": "gsm8k", "metric": "accuracy", "best": 0.5, "best_step": 10, "last_step": 50, "count": 3
    }  # fmt: skip
    with database.write() as session:
        stored = session.get(Job, job.id)
        assert stored is not None
        orders = [{"benchmark": "gsm8k", "label": "gsm8k"}]
        stored.evaluate, stored.cause = (
            {"benchmarks": orders, "every_steps": 10, "stopped": stopped},
            "early_stopped",
        )
        session.add(stored)
        for number, state in enumerate(STATES, 1):
            step = 10 * number
            problem = "The benchmark's rows are not there." if state is DueState.FAILED else None
            session.add(
                Checkpoint(
                    job_id=job.id, step=step, attempt=1, path=f"c/{step}", size_bytes=8, created_at=utc_now()
                )
            )
            session.add(
                DueEvaluation(
                    job_id=job.id, step=step, saved_at=utc_now(), state=state.value, problem=problem
                )
            )
    yield job
    with database.write() as session:  # a job whose checkpoints are to be measured cannot be deleted
        session.exec(delete(DueEvaluation).where(col(DueEvaluation.job_id) == job.id))


def test_a_job_tells_which_score_ended_it_and_where_each_checkpoint_is(
    logged_in: Page, dashboard, measured
) -> None:  # type: ignore[no-untyped-def]
    logged_in.goto(f"{dashboard.url}/jobs/{measured.id}?tab=checkpoints")
    panel = logged_in.locator("[data-test=early-stopped]")
    expect(panel).to_contain_text("has not improved in 3 evaluations")
    expect(panel).to_contain_text("step 10")

    for number, word in enumerate(WORDS, 1):
        row = logged_in.locator(f"tr[data-step='{10 * number}']")
        expect(row.get_by_text(word, exact=True)).to_be_visible()
    expect(logged_in.get_by_text("The benchmark's rows are not there.")).to_be_visible()
    expect(logged_in.locator("[data-test=skipped]")).to_contain_text(
        "evaluated because too many were pending"
    )
