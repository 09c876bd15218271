"""Charts under a finger: the page scrolls, a tap shows values, and nothing is zoomed by accident."""

import json
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

pytestmark = pytest.mark.browser
#: Far enough that a page that scrolls at all has clearly moved.
SWIPE_PX = 300


@pytest.fixture
def phone(browser: Browser, dashboard) -> Iterator[Page]:  # type: ignore[no-untyped-def]
    """A phone with a session, which has no mouse."""
    context = browser.new_context(
        viewport={"width": 390, "height": 844}, locale="en-GB", has_touch=True, is_mobile=True
    )
    page = context.new_page()
    page.request.post(
        f"{dashboard.url}/api/v1/auth/login",
        data=json.dumps({"token": dashboard.token}),
        headers={"Content-Type": "application/json"},
    )
    yield page
    context.close()


def _swipe_up(page: Page, drawing: Locator) -> float:
    """Swipe up with a finger that starts on the drawing; returns by how much the page scrolled."""
    drawing.evaluate("(one) => one.scrollIntoView({ block: 'center' })")
    # A chart is drawn in the moments after it comes into sight.
    page.wait_for_timeout(1500)
    box = drawing.bounding_box()
    assert box is not None
    before = page.evaluate("window.scrollY")
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    finger = page.context.new_cdp_session(page)

    def touch(kind: str, *points: tuple[float, float]) -> None:
        places = [{"x": left, "y": top} for left, top in points]
        finger.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": places})

    touch("touchStart", (x, y))
    for moved in range(0, SWIPE_PX + 1, 20):
        touch("touchMove", (x, y - moved))
        page.wait_for_timeout(16)
    touch("touchEnd")
    page.wait_for_timeout(500)
    return float(page.evaluate("window.scrollY")) - before


def test_a_finger_that_starts_on_a_chart_scrolls_the_page(phone: Page, dashboard, launch) -> None:  # type: ignore[no-untyped-def]
    job = launch("swiped")
    job.train(20)
    phone.goto(f"{dashboard.url}/jobs/{job.id}")
    chart = phone.locator(".canvas canvas").first
    chart.wait_for()

    moved = _swipe_up(phone, chart)

    assert moved > SWIPE_PX / 2
    expect(phone.get_by_role("button", name="Reset zoom")).to_have_count(0)
    expect(phone.get_by_text("Tap a chart to see its values.")).to_be_visible()
    expect(phone.get_by_text("Drag to zoom")).to_be_hidden()


def test_a_tapped_run_is_printed_with_its_values(phone: Page, dashboard, launch) -> None:  # type: ignore[no-untyped-def]
    ids = []
    for rate in (1e-6, 2e-6, 3e-6, 4e-6):
        job = launch(f"rate {rate}", params={"learning_rate": rate})
        job.train(round(rate * 1e7))
        ids.append(job.id)
    phone.goto(f"{dashboard.url}/jobs/compare?ids={','.join(ids)}&tab=parameters")
    dot = phone.locator("circle[data-run]").nth(1)
    dot.wait_for()
    dot.evaluate("(one) => one.scrollIntoView({ block: 'center' })")

    dot.tap()

    printed = phone.locator("[data-test=marked-run]").last
    expect(printed).to_contain_text("rate 2e-06")
    expect(printed).to_contain_text("learning_rate 2e-6")
    expect(phone.get_by_text("Tap a run to see its values.")).to_be_visible()
