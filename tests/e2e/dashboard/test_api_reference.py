"""The API's reference page works under the strict content security policy, from our own server."""

import pytest
from playwright.sync_api import Page, Request, expect

pytestmark = pytest.mark.browser


def test_the_reference_page_shows_every_operation_and_asks_no_other_server(page: Page, dashboard) -> None:  # type: ignore[no-untyped-def]
    asked: list[Request] = []
    page.on("request", lambda request: asked.append(request))

    page.goto(f"{dashboard.url}/api/v1/docs")

    expect(page.get_by_role("heading", name="Trellis")).to_be_visible()
    # Only operations in sight are drawn: each is looked for from the top, by less than the page's height.
    for path in ("/healthz", "/api/v1/jobs", "/v1/chat/completions"):
        shown = page.locator(f"[data-path='{path}']").first
        page.evaluate("scrollTo(0, 0)")
        for _ in range(200):
            if shown.count():
                break
            page.mouse.wheel(0, 500)
            page.wait_for_timeout(100)
        expect(shown).to_be_visible()
    assert all(each.url.startswith((dashboard.url, "data:", "blob:")) for each in asked)
