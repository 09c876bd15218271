"""Details of the jobs' pages that were once wrong: phones, jobs that never started, shifting layouts."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from trellis_cli.client import ApiClient
from trellis_cli.waiting import wait_for_dataset
from trellis_testing.markup import MARKED_NAME, MARKED_TEXT, find_acting
from trellis_testing.reporting_jobs import now

pytestmark = pytest.mark.browser
#: What Chromium calls good.
GOOD_SHIFT = 0.1
SOURCE = {"kind": "local", "path": "models/tiny"}
_SHIFTS = """
window.shifts = 0
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts += entry.value
}).observe({ type: 'layout-shift', buffered: true })
"""


@pytest.fixture
def phone(browser: Browser, dashboard) -> Iterator[Page]:  # type: ignore[no-untyped-def]
    """A phone with a session."""
    context = browser.new_context(viewport={"width": 390, "height": 844}, locale="en-GB", has_touch=True)
    page = context.new_page()
    page.request.post(
        f"{dashboard.url}/api/v1/auth/login",
        data=json.dumps({"token": dashboard.token}),
        headers={"Content-Type": "application/json"},
    )
    yield page
    context.close()


def test_a_tap_on_a_chart_shows_its_values(phone: Page, dashboard, launch) -> None:  # type: ignore[no-untyped-def]
    job = launch("tapped")
    job.train(20)
    phone.goto(f"{dashboard.url}/jobs/{job.id}")
    chart = phone.locator(".canvas canvas").first
    chart.wait_for()
    chart.evaluate("(canvas) => canvas.scrollIntoView({ block: 'center' })")
    # A chart is drawn in the moments after it comes into sight.
    phone.wait_for_timeout(1500)
    box = chart.bounding_box()
    assert box is not None

    phone.touchscreen.tap(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)

    expect(phone.locator(".chart-tooltip-value").first).to_be_visible()


@pytest.mark.parametrize("tab", ["charts", "checkpoints", "manifest"])
def test_the_tab_of_the_address_is_in_sight_on_a_phone(phone: Page, dashboard, launch, tab: str) -> None:  # type: ignore[no-untyped-def]
    job = launch("deep link")
    job.train(2)

    phone.goto(f"{dashboard.url}/jobs/{job.id}?tab={tab}")

    expect(phone.locator("#job-tab-" + tab)).to_be_in_viewport(ratio=0.9)


def test_a_job_that_never_started_says_so(logged_in: Page, dashboard, queue, call_api) -> None:  # type: ignore[no-untyped-def]
    job = queue("stopped in the queue")
    call_api("POST", f"/jobs/{job['id']}/stop")

    logged_in.goto(f"{dashboard.url}/jobs/{job['id']}")

    expect(logged_in.get_by_text("The job never started.")).to_be_visible()


def test_an_unknown_job_has_a_heading_and_a_way_back(logged_in: Page, dashboard) -> None:  # type: ignore[no-untyped-def]
    logged_in.goto(f"{dashboard.url}/jobs/job_aaaaaaaaaaaa")

    expect(logged_in.get_by_role("heading", level=1, name="Job")).to_be_visible()
    logged_in.get_by_role("main").get_by_role("link", name="Jobs", exact=True).first.click()
    expect(logged_in).to_have_url(f"{dashboard.url}/jobs")


@pytest.mark.parametrize("path", ["/jobs", "/evaluations", "/evaluations/leaderboard"])
def test_filters_do_not_shift_the_page_on_a_phone(phone: Page, dashboard, queue, path: str) -> None:  # type: ignore[no-untyped-def]
    queue("one", tags=["a"])
    phone.add_init_script(_SHIFTS)

    phone.goto(f"{dashboard.url}{path}")
    phone.get_by_role("heading", level=1).wait_for()
    phone.wait_for_timeout(3000)

    assert phone.evaluate("window.shifts") < GOOD_SHIFT


@pytest.fixture
def unguarded(browser: Browser, dashboard) -> Iterator[Page]:  # type: ignore[no-untyped-def]
    """A session in a browser that ignores the content security policy: what is escaped needs none."""
    context = browser.new_context(viewport={"width": 1280, "height": 860}, locale="en-GB", bypass_csp=True)
    page = context.new_page()
    page.request.post(
        f"{dashboard.url}/api/v1/auth/login",
        data=json.dumps({"token": dashboard.token}),
        headers={"Content-Type": "application/json"},
    )
    yield page
    context.close()


@pytest.fixture
def marked_dataset(api: ApiClient, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Markup in the names of a dataset, its file and a column, and in its rows; deleted afterwards."""
    file = tmp_path / (MARKED_NAME + ".jsonl")
    rows = [{"question": MARKED_TEXT, "answer": f"#### {n}", MARKED_NAME: MARKED_TEXT} for n in range(40)]
    file.write_text("\n".join(json.dumps(row) for row in rows))
    made = api.upload("/datasets", file, {"name": MARKED_NAME, "description": MARKED_TEXT})
    yield wait_for_dataset(api, made["id"])
    api.delete(f"/datasets/{made['id']}")


@pytest.mark.timeout(300)
def test_markup_in_names_texts_and_output_stays_text(  # type: ignore[no-untyped-def]
    unguarded: Page, dashboard, launch, call_api, marked_dataset: dict[str, Any]
) -> None:
    jobs = [launch(MARKED_NAME, tags=[MARKED_NAME[:40]], dataset=marked_dataset["id"]), launch("plain")]
    rollout = {
        "group": "0000001-0000001",
        "prompt": MARKED_TEXT,
        "messages": [{"role": "user", "content": MARKED_TEXT}],
        "response": f"<think>{MARKED_TEXT}</think>{MARKED_TEXT}",
        "ground_truth": MARKED_TEXT,
        "score": 1.0,
        "reward_parts": {"acc": 1.0},
        "response_tokens": 9,
    }
    for job in jobs:
        job.train(3)
        job.send(
            {"kind": "log", "time": now(), "stream": "stderr", "lines": MARKED_TEXT.splitlines()},
            {"kind": "rollouts", "time": now(), "step": 1, "split": "train", "rollouts": [rollout, rollout]},
        )
    marked = jobs[0].id
    call_api("PATCH", f"/jobs/{marked}", {"notes": MARKED_TEXT})
    jobs[0].settle("failed", reason=MARKED_TEXT[:500], cause="crashed")

    described = call_api(
        "POST", "/models", {"name": "described", "description": MARKED_TEXT, "source": SOURCE}
    )
    tabs = ("logs", "rollouts", "configuration", "manifest")
    paths = [
        *(
            "/",
            "/jobs",
            "/datasets",
            f"/jobs/compare?ids={marked},{jobs[1].id}",
            f"/models/{described['id']}",
        ),
        *(f"/jobs/{marked}", *(f"/jobs/{marked}?tab={tab}" for tab in tabs)),
        *(f"/datasets/{marked_dataset['id']}?tab={tab}" for tab in ("sample", "statistics", "versions")),
    ]
    unguarded.set_content(MARKED_TEXT)
    assert find_acting(unguarded), "markup that is taken for the page's own would not be seen"
    found = {}
    try:
        for path in paths:
            answer = unguarded.goto(f"{dashboard.url}{path}")
            assert answer is not None
            assert "script-src 'self';" in answer.headers["content-security-policy"]
            expect(unguarded.get_by_role("main")).to_contain_text("onerror=")
            for canvas in unguarded.locator("canvas").all()[:1]:
                canvas.hover()
            unguarded.wait_for_load_state("networkidle")
            if acting := find_acting(unguarded):
                found[path] = acting
    finally:
        call_api("DELETE", f"/models/{described['id']}")

    assert found == {}
