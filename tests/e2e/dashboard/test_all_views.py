"""Every view of a filled platform: axe-core finds nothing, and nothing is wider than a phone."""

import json
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from trellis_testing.accessibility import check, find_violations, tell

pytestmark = [pytest.mark.browser, pytest.mark.timeout(900)]
PHONE = {"width": 390, "height": 844}
#: Where people are most of the time. The fast set looks at these, the whole set at the others too.
MAIN = (
    "overview", "jobs", "launch form", "job, charts", "job, rollouts", "job that failed", "datasets",
    "models", "evaluations", "playground",
)  # fmt: skip
IS_TOO_WIDE = "() => document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture
def session(page: Page, filled: Any) -> Page:
    """A tab with a session on the filled platform."""
    served, _ = filled
    login = {"data": json.dumps({"token": served.token}), "headers": {"Content-Type": "application/json"}}
    page.request.post(f"{served.url}/api/v1/auth/login", **login)
    return page


@pytest.mark.smoke
def test_no_main_view_of_a_filled_platform_breaks_a_rule(session: Page, filled: Any) -> None:
    _, views = filled

    found = find_violations(session, (views[name] for name in MAIN))

    assert not found, tell(found)


def test_no_other_view_of_a_filled_platform_breaks_a_rule(session: Page, filled: Any) -> None:
    served, views = filled

    found = find_violations(session, (address for name, address in views.items() if name not in MAIN))

    session.goto(served.url)
    session.get_by_role("heading", level=1, name="Overview").wait_for()
    session.keyboard.press("Control+k")
    expect(session.get_by_role("combobox", name="Find pages, actions")).to_be_focused()
    found |= {violation: ["the command palette"] for violation in check(session)}
    assert not found, tell(found)


def test_no_view_of_a_filled_platform_is_wider_than_a_phone(session: Page, filled: Any) -> None:
    _, views = filled
    session.set_viewport_size(PHONE)  # type: ignore[arg-type]
    too_wide = []

    for name, address in views.items():
        session.goto(address)
        expect(session.get_by_role("heading", level=1).first).to_be_attached()
        session.wait_for_load_state("networkidle")
        expect(session.locator(".n-skeleton")).to_have_count(0)
        if session.evaluate(IS_TOO_WIDE):
            too_wide.append(name)

    assert too_wide == []
