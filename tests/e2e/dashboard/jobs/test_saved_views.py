"""Saved views of the job list and dashboards of charts, in a real browser."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def save_view(page: Page, name: str) -> None:
    page.locator("[data-test=views]").click()
    page.get_by_label("Name of the view").fill(name)
    page.get_by_role("button", name="Save view").click()
    expect(page.locator("[data-test=view]")).to_contain_text(name)
    page.keyboard.press("Escape")
    page.get_by_role("heading", level=1).click()


def test_a_view_of_the_list_is_saved_shown_again_and_deleted(
    logged_in: Page,
    dashboard: Any,
    launch: Any,
) -> None:
    launch("to be listed")
    logged_in.goto(f"{dashboard.url}/jobs?starred=1&sort=name")
    save_view(logged_in, "my stars")

    logged_in.goto(f"{dashboard.url}/jobs")
    menu = logged_in.locator("[data-test=views]")
    menu.click()
    logged_in.get_by_role("button", name="my stars", exact=True).click()

    expect(logged_in).to_have_url(re.compile(r"starred=1&sort=name"))
    expect(menu).to_have_text("Views: my stars")
    menu.click()
    logged_in.get_by_role("button", name="Delete my stars").click()
    logged_in.get_by_role("button", name="Delete", exact=True).click()
    expect(menu).to_have_text("Views")


def test_a_dashboard_of_ones_own_is_for_every_run_of_the_recipe(
    logged_in: Page,
    dashboard: Any,
    launch: Any,
) -> None:
    first, second = launch("the first run"), launch("the second run")
    for job in (first, second):
        job.train(3)
    logged_in.goto(f"{dashboard.url}/jobs/{first.id}")
    charts = logged_in.locator("figure.chart[data-metric]")
    charts.nth(1).wait_for()
    keys = [each.get_attribute("data-metric") for each in charts.all()[:2]]
    logged_in.locator("[data-test=arrange]").click()

    logged_in.locator("[data-test=earlier]").nth(1).click()
    expect(charts.first).to_have_attribute("data-metric", keys[1] or "")
    while charts.count() > 2:
        before = charts.count()
        logged_in.locator("[data-test=remove]").last.click()
        expect(charts).to_have_count(before - 1)
    arranged = [each.get_attribute("data-metric") for each in charts.all()]
    save_view(logged_in, "two charts")

    logged_in.goto(f"{dashboard.url}/jobs/{second.id}")
    expect(charts).to_have_count(2)
    expect(logged_in.locator("[data-test=views]")).to_have_text("Dashboard: two charts")
    assert [each.get_attribute("data-metric") for each in charts.all()] == arranged
    logged_in.locator("[data-test=views]").click()
    logged_in.get_by_role("button", name="Default", exact=True).click()
    expect(charts.nth(2)).to_be_visible()
