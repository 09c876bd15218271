"""The frame around every page: languages, themes, keys, narrow screens, a lost connection."""

import pytest
from playwright.sync_api import BrowserContext, Page, expect
from trellis_testing.pages import choose_from_menu

pytestmark = pytest.mark.browser

PAGES = ("/", "/jobs", "/jobs/new", "/datasets", "/models", "/no/such/page", "/datasets/ds_aaaaaaaaaaaa")


def test_an_empty_platform_teaches_the_first_job(logged_in: Page) -> None:
    expect(logged_in.get_by_text("Train your first model")).to_be_visible()

    logged_in.get_by_role("main").get_by_role("button", name="Upload a dataset").click()

    expect(logged_in.get_by_role("dialog")).to_contain_text("Drop files here")


def test_the_overview_says_how_old_each_measurement_is(logged_in: Page) -> None:
    database = logged_in.locator("[data-component=database]")

    expect(database).to_have_count(0)
    logged_in.get_by_role("button", name="Details").click()

    expect(database).to_contain_text("Healthy")
    expect(database).to_contain_text("checked")


def test_language_and_theme_are_remembered(logged_in: Page) -> None:
    choose_from_menu(logged_in, logged_in.get_by_role("button", name="Language"), "中文")
    expect(logged_in.get_by_role("heading", level=1, name="概览")).to_be_visible()
    choose_from_menu(logged_in, logged_in.get_by_role("button", name="主题"), "深色")

    logged_in.reload()

    expect(logged_in.get_by_role("heading", level=1, name="概览")).to_be_visible()
    assert logged_in.locator("html").get_attribute("data-theme") == "dark"
    assert logged_in.locator("html").get_attribute("lang") == "zh-CN"


def test_keys_lead_to_every_page_and_the_help_lists_them(logged_in: Page) -> None:
    for keys, heading in (("gj", "Jobs"), ("gd", "Datasets"), ("gm", "Models"), ("go", "Overview")):
        for key in keys:
            logged_in.keyboard.press(key)
        expect(logged_in.get_by_role("heading", level=1, name=heading, exact=True)).to_be_focused()

    logged_in.keyboard.press("?")

    expect(logged_in.get_by_role("dialog")).to_contain_text("Go to datasets")


def test_the_palette_leads_to_pages_and_runs_actions(logged_in: Page) -> None:
    box = logged_in.get_by_role("combobox", name="Find pages, actions")
    options = logged_in.get_by_role("option")

    logged_in.keyboard.press("Control+k")
    expect(box).to_be_focused()
    logged_in.keyboard.type("agent co")
    expect(options).to_have_count(1)
    logged_in.keyboard.press("Enter")
    expect(logged_in.get_by_role("heading", level=1, name="Agent code")).to_be_focused()
    expect(box).to_be_hidden()

    logged_in.keyboard.press("Control+k")
    expect(box).to_be_focused()
    logged_in.keyboard.press("Control+k")
    expect(box).to_be_hidden()

    logged_in.get_by_role("button", name="Search").click()
    logged_in.keyboard.type("upload")
    options.filter(has_text="Upload dataset").click()
    expect(logged_in.get_by_role("dialog", name="Upload dataset")).to_contain_text("Drop files here")


def test_the_side_bar_names_every_page_of_an_area(logged_in: Page) -> None:
    bar = logged_in.get_by_role("navigation", name="Main navigation")

    for section, page, heading in (
        ("Build", "Data pipelines", "Data pipelines"),
        ("Train", "Workflows", "Workflows"),
        ("Ship", "Playground", "Playground"),
    ):
        link = bar.get_by_role("group", name=section).get_by_role("link", name=page)
        link.click()
        expect(logged_in.get_by_role("heading", level=1, name=heading)).to_be_visible()
        expect(link).to_have_attribute("aria-current", "page")
        expect(bar.locator("[aria-current]")).to_have_count(1)


def test_the_first_tab_stop_skips_to_the_content(logged_in: Page) -> None:
    logged_in.reload()
    logged_in.get_by_role("heading", level=1, name="Overview").wait_for()

    logged_in.keyboard.press("Tab")
    expect(logged_in.get_by_text("Skip to content")).to_be_focused()
    logged_in.keyboard.press("Enter")

    expect(logged_in.locator("main")).to_be_focused()


def test_a_lost_connection_is_said_and_its_return_too(logged_in: Page, context: BrowserContext) -> None:
    notice = logged_in.get_by_text("Connection lost")

    context.set_offline(True)
    expect(notice).to_be_visible()
    context.set_offline(False)

    expect(notice).to_be_hidden()


@pytest.mark.parametrize("width", [360, 768])
def test_no_page_is_wider_than_a_narrow_screen(logged_in: Page, dashboard, width: int) -> None:
    logged_in.set_viewport_size({"width": width, "height": 800})
    too_wide = {}

    for path in PAGES:
        logged_in.goto(dashboard.url + path)
        logged_in.locator("main").wait_for()
        logged_in.wait_for_load_state("networkidle")
        excess = logged_in.evaluate(
            "document.documentElement.scrollWidth - document.documentElement.clientWidth"
        )
        if excess > 0:
            too_wide[path] = excess

    assert too_wide == {}


def test_pages_lead_to_their_documentation(logged_in: Page, dashboard) -> None:
    logged_in.goto(f"{dashboard.url}/datasets")
    logged_in.get_by_role("main").get_by_role("link", name="Docs", exact=True).click()
    article = logged_in.locator("article")

    expect(article.get_by_role("heading", level=2, name="Data")).to_be_visible()
    logged_in.get_by_role("navigation", name="Docs").get_by_role("link", name="Serving").click()
    expect(article.get_by_role("heading", level=2, name="Serving")).to_be_visible()

    logged_in.goto(f"{dashboard.url}/help/nothing")
    expect(logged_in.get_by_text("There’s nothing at /help/nothing.")).to_be_visible()


def test_an_unknown_address_leads_back(logged_in: Page, dashboard) -> None:
    logged_in.goto(f"{dashboard.url}/no/such/page")
    expect(logged_in.get_by_text("There’s nothing at /no/such/page.")).to_be_visible()

    logged_in.get_by_role("button", name="Go to overview").click()

    expect(logged_in.get_by_role("heading", level=1, name="Overview")).to_be_visible()
