"""The list of jobs: filters in the address, paging, actions."""

import re

import pytest
from playwright.sync_api import Page, expect
from trellis_testing.pages import choose_from_menu

pytestmark = pytest.mark.browser


def rows(page: Page):  # type: ignore[no-untyped-def]
    """The jobs that are listed."""
    return page.locator("tbody tr[data-job]")


def test_filters_narrow_the_list_and_stay_in_the_address(logged_in: Page, dashboard, queue) -> None:  # type: ignore[no-untyped-def]
    queue("red apple", tags=["fruit"])
    queue("green apple", tags=["fruit", "green"])
    queue("carrot")
    logged_in.goto(f"{dashboard.url}/jobs")
    expect(rows(logged_in)).to_have_count(3)

    logged_in.get_by_label("Name, ID or tag").fill("apple")
    expect(rows(logged_in)).to_have_count(2)
    rows(logged_in).get_by_role("button", name="green", exact=True).click()
    expect(rows(logged_in)).to_have_count(1)
    expect(logged_in).to_have_url(re.compile(r"text=apple"))
    expect(logged_in).to_have_url(re.compile(r"tag=green"))

    logged_in.reload()
    expect(rows(logged_in)).to_have_count(1)
    logged_in.goto(f"{dashboard.url}/jobs?state=failed")
    expect(logged_in.get_by_text("No matching jobs")).to_be_visible()
    logged_in.get_by_role("button", name="Clear filters").last.click()
    expect(rows(logged_in)).to_have_count(3)


def test_more_jobs_than_a_page_are_loaded_on_demand(logged_in: Page, dashboard, queue) -> None:  # type: ignore[no-untyped-def]
    for number in range(28):
        queue(f"job {number}")
    logged_in.goto(f"{dashboard.url}/jobs")
    expect(rows(logged_in)).to_have_count(25)

    logged_in.get_by_role("button", name="Load more").click()

    expect(rows(logged_in)).to_have_count(28)
    expect(logged_in.get_by_role("button", name="Load more")).to_have_count(0)


def test_a_queued_job_is_stopped_and_deleted_from_the_list(logged_in: Page, dashboard, queue) -> None:  # type: ignore[no-untyped-def]
    queue("short lived")
    logged_in.goto(f"{dashboard.url}/jobs")
    row = rows(logged_in).first
    expect(row).to_contain_text("#1 in queue")

    row.get_by_role("button", name="Stop").click()
    logged_in.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(row).to_contain_text("Stopped")

    choose_from_menu(logged_in, row.get_by_role("button", name="More actions"), "Delete")
    logged_in.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(logged_in.get_by_text("No training jobs yet")).to_be_visible()


def test_the_list_follows_a_running_job(logged_in: Page, dashboard, launch) -> None:  # type: ignore[no-untyped-def]
    job = launch("on its way")
    job.train(20)
    logged_in.goto(f"{dashboard.url}/jobs")
    row = rows(logged_in).first
    expect(row).to_contain_text("step 20 of 100")
    expect(row.locator("[data-column=metricLast]")).to_contain_text("Score (mean)")
    logged_in.locator("[data-test=columns]").click()
    logged_in.get_by_role("checkbox", name="Curve").click()
    expect(row.get_by_role("img", name="Score (mean), currently 0.2")).to_be_visible()

    job.train(30)

    expect(row).to_contain_text("step 50 of 100")


def test_the_order_and_the_selection_stay_in_the_address(logged_in: Page, dashboard, queue) -> None:  # type: ignore[no-untyped-def]
    for name in ("pear", "apple", "plum"):
        queue(name)
    logged_in.goto(f"{dashboard.url}/jobs")

    logged_in.locator("[data-sort=name]").click()
    expect(rows(logged_in).first).to_contain_text("apple")
    logged_in.locator("[data-sort=name]").click()
    expect(rows(logged_in).first).to_contain_text("plum")
    expect(logged_in.get_by_role("columnheader", name="Name")).to_have_attribute("aria-sort", "descending")
    rows(logged_in).first.locator("[data-test=select]").click()
    logged_in.reload()

    expect(rows(logged_in).first).to_contain_text("plum")
    expect(logged_in.locator("[data-test=selection]")).to_contain_text("1 selected")


def test_several_jobs_are_tagged_and_stopped_at_once(logged_in: Page, dashboard, queue) -> None:  # type: ignore[no-untyped-def]
    for name in ("one", "two"):
        queue(name)
    logged_in.goto(f"{dashboard.url}/jobs")
    logged_in.locator("[data-test=select-all]").click()

    logged_in.locator("[data-test=bulk-tag]").click()
    logged_in.get_by_label("New tag").fill("sweep")
    logged_in.get_by_role("button", name="Add", exact=True).click()
    expect(rows(logged_in).get_by_role("button", name="sweep", exact=True)).to_have_count(2)
    logged_in.locator("[data-test=bulk-stop]").click()
    logged_in.get_by_role("dialog").get_by_role("button", name="Stop", exact=True).click()

    expect(rows(logged_in).filter(has_text="Stopped")).to_have_count(2)


def test_a_job_is_renamed_tagged_starred_and_annotated_on_its_page(logged_in: Page, dashboard, queue) -> None:  # type: ignore[no-untyped-def]
    job = queue("before")
    logged_in.goto(f"{dashboard.url}/jobs/{job['id']}")

    logged_in.locator("[data-test=rename]").click()
    logged_in.get_by_label("Name", exact=True).fill("after")
    logged_in.keyboard.press("Enter")
    expect(logged_in).to_have_title(re.compile("^after"))
    logged_in.locator("[data-test=add-tag]").click()
    logged_in.get_by_label("New tag").fill("kept")
    logged_in.keyboard.press("Enter")
    logged_in.locator("[data-test=star]").click()
    logged_in.locator("[data-test=edit-notes]").click()
    logged_in.get_by_label("Notes", exact=True).last.fill(
        "# Why\n\n- **higher** rate\n- <img src=x onerror=alert(1)>"
    )
    logged_in.locator("[data-test=save-notes]").click()

    notes = logged_in.locator("[data-test=notes]")
    expect(notes.get_by_role("heading", name="Why")).to_be_visible()
    expect(notes.locator("strong")).to_have_text("higher")
    expect(notes.locator("img")).to_have_count(0)
    logged_in.goto(f"{dashboard.url}/jobs?starred=1")
    expect(rows(logged_in)).to_contain_text(["after"])
    expect(rows(logged_in)).to_contain_text(["kept"])


def test_parameters_and_metrics_become_columns_that_sort_and_stay_in_the_address(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    launch,  # type: ignore[no-untyped-def]
    queue,  # type: ignore[no-untyped-def]
) -> None:
    launch("measured").train(20)
    queue("not yet")
    logged_in.goto(f"{dashboard.url}/jobs")
    logged_in.locator("[data-test=columns]").click()

    logged_in.locator("[data-test=parameter-columns]").click()
    logged_in.keyboard.type("learning_rate")
    logged_in.locator(".n-base-select-option").filter(has_text="Learning rate · learning_rate").click()
    logged_in.locator("[data-test=metric-key]").click()
    logged_in.keyboard.type("critic/score/mean")
    logged_in.keyboard.press("Enter")
    logged_in.locator("[data-test=add-metric]").click()
    expect(rows(logged_in).locator('[data-column="parameters.learning_rate"]')).to_have_count(2)
    # The menu lies over the table until it is left.
    logged_in.get_by_role("heading", level=1).click()
    logged_in.locator('[data-sort="metrics.last.critic/score/mean"]').click()

    expect(rows(logged_in).first).to_contain_text("measured")
    logged_in.reload()
    expect(rows(logged_in).first).to_contain_text("measured")
    expect(rows(logged_in).first.locator('[data-column="metrics.last.critic/score/mean"]')).to_have_text(
        "0.2"
    )
    expect(logged_in.get_by_role("columnheader", name="Score (mean) · last")).to_have_attribute(
        "aria-sort", "descending"
    )


def test_the_baseline_stays_in_sight_and_groups_count_all_of_their_jobs(  # type: ignore[no-untyped-def]
    logged_in: Page, dashboard, queue, launch
) -> None:
    base = launch("the baseline", tags=["b"])
    base.train(3)
    for place in range(28):
        queue(f"run {place:02}", tags=["a", "c"])
    logged_in.goto(f"{dashboard.url}/jobs?group_by=tags&sort=name&order=asc&baseline={base.id}")

    expect(logged_in.locator("[data-test=group-heading]").first).to_contain_text("25 of 28 jobs")
    pinned = logged_in.locator("[data-test=pinned-baseline]")
    expect(pinned).to_contain_text("the baseline")
    logged_in.locator("[data-job]").last.scroll_into_view_if_needed()
    logged_in.mouse.move(700, 500)
    logged_in.mouse.wheel(0, 5000)
    logged_in.wait_for_timeout(500)
    box = pinned.bounding_box()
    assert box is not None
    # Where the row is drawn nothing covers it, such as the top bar.
    place = [box["x"] + 40, box["y"] + box["height"] / 2]
    assert pinned.evaluate("(one, [x, y]) => one.contains(document.elementFromPoint(x, y))", place)

    logged_in.goto(f"{dashboard.url}/jobs?text=run&baseline={base.id}")
    expect(pinned).to_contain_text("the baseline")
