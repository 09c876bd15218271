"""The queue: its order, and jobs that are moved by mouse and keyboard."""

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def test_queued_jobs_are_moved_by_mouse_and_keyboard(logged_in: Page, dashboard, queue) -> None:  # type: ignore[no-untyped-def]
    for name in ("first", "second", "third"):
        queue(name)
    logged_in.goto(f"{dashboard.url}/jobs/queue")
    names = logged_in.locator("ol li[data-job] a")
    expect(names).to_have_text(["first", "second", "third"])

    logged_in.get_by_role("button", name="Move third to the top").click()
    expect(names).to_have_text(["third", "first", "second"])
    expect(logged_in.get_by_role("status").filter(has_text="third is now #1 in the queue")).to_have_count(1)

    names.nth(1).focus()
    logged_in.keyboard.press("Alt+ArrowDown")
    expect(names).to_have_text(["third", "second", "first"])

    rows = logged_in.locator("ol li[data-job]")
    rows.nth(2).drag_to(rows.nth(0))
    expect(names).to_have_text(["first", "third", "second"])
    logged_in.reload()
    expect(names).to_have_text(["first", "third", "second"])
