"""Details of the jobs' pages that were once wrong: phones, jobs that never started, shifting layouts."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect

pytestmark = pytest.mark.browser
#: What Chromium calls good.
GOOD_SHIFT = 0.1
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
    chart = phone.locator("canvas").first
    chart.wait_for()
    chart.scroll_into_view_if_needed()
    phone.wait_for_timeout(500)
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
