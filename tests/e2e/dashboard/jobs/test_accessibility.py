"""axe-core finds nothing on these views, in both themes."""

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page
from trellis_testing.accessibility import find_violations, tell
from trellis_testing.reporting_jobs import ReportingJob, now

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]
#: Views of a platform on which nothing has been done yet.
VIEWS = (
    *("", "jobs/compare", "sweeps", "job-pipelines", "datasets", "pipelines", "pipelines?tab=runs"),
    *("models", "rewards", "rewards?tab=files", "environments", "workflows", "reports", "nowhere"),
    *("registry", "playground", "playground?format=schema&tools=[&m=base&m=trained"),
    *(
        "evaluations",
        "evaluations/benchmarks",
        "evaluations/leaderboard",
        "evaluations/matrix",
        "evaluations/compare",
    ),
)
JOB_TABS = ("logs", "rollouts", "time", "system", "checkpoints", "configuration", "manifest")


def test_the_login_page_and_the_views_of_an_empty_platform_break_no_rule(
    page: Page,
    dashboard,  # type: ignore[no-untyped-def]
) -> None:
    found = find_violations(page, [f"{dashboard.url}/login", f"{dashboard.url}/login?why=expired"])
    page.request.post(f"{dashboard.url}/api/v1/auth/login", data={"token": dashboard.token})

    found |= find_violations(page, [f"{dashboard.url}/{path}" for path in VIEWS])

    assert not found, tell(found)


def test_what_a_job_has_left_breaks_no_rule(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    launch: Callable[..., ReportingJob],
) -> None:
    job = launch("in full bloom", tags=["first"])
    job.train(12)
    job.send(_rollouts(12), _checkpoint(12))

    found = find_violations(logged_in, [f"{dashboard.url}/jobs/{job.id}?tab={tab}" for tab in JOB_TABS])

    assert not found, tell(found)


def _rollouts(step: int) -> dict[str, Any]:
    def rollout(group: str, score: float, response: str) -> dict[str, Any]:
        return {
            "group": group,
            "prompt": f"user: What is {group} + {group}?",
            "response": response,
            "ground_truth": "4",
            "score": score,
            "reward_parts": {"correct": score},
            "response_tokens": 12,
            "advantage": score - 0.5,
        }

    rollouts = [rollout("2", 1.0, "It is 4."), rollout("2", 0.0, "It is 5."), rollout("3", 0.0, "It is 7.")]
    return {"kind": "rollouts", "time": now(), "step": step, "rollouts": rollouts}


def _checkpoint(step: int) -> dict[str, Any]:
    path = f"checkpoints/global_step_{step}"
    return {"kind": "checkpoint", "time": now(), "step": step, "path": path, "size_bytes": 9_000_000}
