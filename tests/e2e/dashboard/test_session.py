"""Logging in and out, in a real browser."""

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from trellis_testing.pages import choose_from_menu

pytestmark = pytest.mark.browser


def test_a_login_link_opens_the_page_that_was_asked_for_and_works_once(
    page: Page, context: BrowserContext, dashboard
) -> None:
    link = dashboard.make_login_link()

    page.goto(f"{link}&next=/models")
    expect(page.get_by_role("heading", level=1, name="Models")).to_be_visible()
    assert "code=" not in page.url

    context.clear_cookies()
    page.goto(link)
    expect(page.get_by_text("This login link has expired or was already used.")).to_be_visible()
    assert "code=" not in page.url


def test_a_wrong_token_is_refused_and_the_right_one_leads_on(page: Page, dashboard) -> None:
    page.goto(f"{dashboard.url}/datasets?text=maths")
    page.get_by_label("Admin token").fill("not-the-token")
    page.get_by_role("button", name="Log in").click()
    expect(page.get_by_role("alert")).to_contain_text("Invalid admin token.")

    page.get_by_label("Admin token").fill(dashboard.token)
    page.get_by_role("button", name="Log in").click()

    expect(page.get_by_role("heading", level=1, name="Datasets")).to_be_visible()
    assert page.url == f"{dashboard.url}/datasets?text=maths"


def test_a_login_never_leads_to_another_site(page: Page, dashboard) -> None:
    page.goto(f"{dashboard.make_login_link()}&next=//elsewhere.example/")

    expect(page.get_by_role("heading", level=1, name="Overview")).to_be_visible()
    assert page.url == f"{dashboard.url}/"


def test_a_session_that_ended_asks_for_a_login_and_returns(
    logged_in: Page, context: BrowserContext, dashboard
) -> None:
    logged_in.goto(f"{dashboard.url}/models?text=qwen")
    expect(logged_in.get_by_role("heading", level=1, name="Models")).to_be_visible()

    context.clear_cookies()
    expect(logged_in.get_by_text("Your session has expired.")).to_be_visible()
    logged_in.get_by_label("Admin token").fill(dashboard.token)
    logged_in.get_by_label("Admin token").press("Enter")

    expect(logged_in.get_by_role("heading", level=1, name="Models")).to_be_visible()
    assert logged_in.url == f"{dashboard.url}/models?text=qwen"


def test_logging_out_ends_the_session_on_the_server(logged_in: Page, dashboard) -> None:
    choose_from_menu(logged_in, logged_in.get_by_role("button", name="Account"), "Log out")
    expect(logged_in.get_by_role("button", name="Log in")).to_be_visible()

    logged_in.goto(f"{dashboard.url}/models")

    expect(logged_in.get_by_role("button", name="Log in")).to_be_visible()
