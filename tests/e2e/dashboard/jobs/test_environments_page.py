"""An environment from the page: made, read, its tools tried by hand, trained on, deleted."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect
from trellis_api.core.settings import Settings
from trellis_testing.agent_work import carrying_out_agent_work

pytestmark = pytest.mark.browser
NAME = "People of Bern"


@pytest.fixture(autouse=True)
def worker(dashboard, call_api) -> Iterator[None]:  # type: ignore[no-untyped-def]
    """Makes environments and calls their tools while a test lasts."""
    settings = Settings(
        data_root=dashboard.data_root, database_url=None, redis_url=None, min_free_disk_bytes=0
    )
    with carrying_out_agent_work(settings):
        yield
    # An environment's rows stay when it is deleted.
    for each in call_api("GET", "/datasets?limit=200")["items"]:
        if each["name"].startswith(NAME):
            call_api("DELETE", f"/datasets/{each['id']}")


def test_an_environment_is_made_tried_by_hand_and_trained_on(logged_in: Page, dashboard, tidy, model) -> None:  # type: ignore[no-untyped-def]
    logged_in.goto(f"{dashboard.url}/environments")
    expect(logged_in.get_by_text("No environments yet")).to_be_visible()
    logged_in.get_by_role("button", name="Create environment").first.click()
    dialog = logged_in.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill(NAME)
    for label, count in (("Profiles", "60"), ("Training queries", "8"), ("Evaluation queries", "3")):
        dialog.get_by_label(label, exact=True).fill(count)
    dialog.get_by_role("button", name="Create", exact=True).click()

    expect(logged_in.get_by_role("heading", level=1, name=NAME)).to_be_visible()
    tools = logged_in.locator("[data-test=tools]")
    expect(tools.locator("[data-tool]")).to_have_count(3)
    expect(tools.locator("[data-tool=return_results]")).to_contain_text("ends the episode")
    expect(logged_in.locator("[data-test=environment-rows]")).to_contain_text("train: 8 rows")

    form = logged_in.locator("[data-test=try-tool]")
    expect(form.get_by_role("button", name="Call")).to_be_disabled()
    form.locator("textarea").first.fill("SELECT name, linkedin_handle FROM profiles LIMIT 3")
    form.get_by_role("button", name="Call").click()
    answer = form.locator("[data-test=call-result]")
    expect(answer.locator("tbody tr")).to_have_count(3)
    expect(answer.locator("[data-test=call-time]")).to_have_text(re.compile(r"^[\d.]+ m?s$"))
    form.locator("textarea").first.fill("DELETE FROM profiles")
    form.locator("textarea").first.press("Control+Enter")
    expect(answer).to_contain_text("only SELECT is allowed")

    logged_in.locator("[data-test=train-on-it]").click()
    expect(logged_in.get_by_role("heading", level=1, name="New job")).to_be_visible()
    expect(logged_in.locator("[data-test=environment-select]")).to_contain_text(NAME)
    expect(logged_in.locator("[data-field=dataset]")).to_contain_text(NAME)
    logged_in.go_back()

    logged_in.locator("[data-test=delete-environment]").click()
    logged_in.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(logged_in.get_by_text("No environments yet")).to_be_visible()
