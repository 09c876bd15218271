"""A job from the form to its end, in a real browser."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def metric(page: Page, key: str):  # type: ignore[no-untyped-def]
    """The chart of a metric."""
    return page.locator(f'[data-metric="{key}"]')


def test_a_job_is_launched_from_the_form_watched_and_stopped(
    page: Page,
    dashboard,  # type: ignore[no-untyped-def]
    model: dict[str, Any],
    dataset_file: Path,
    call_api: Callable[..., Any],
    adopt: Callable[[str], Any],
    tidy: None,
) -> None:
    page.goto(dashboard.make_login_link())
    page.get_by_role("heading", level=1, name="Overview").wait_for()

    page.goto(f"{dashboard.url}/datasets")
    page.get_by_role("button", name="Upload dataset").first.click()
    page.get_by_role("dialog").locator("input[type=file]").set_input_files(dataset_file)
    page.get_by_role("dialog").get_by_role("button", name="Upload").click()
    page.wait_for_url(re.compile("/datasets/ds_"))
    dataset_id = page.url.rsplit("/", 1)[1]

    page.goto(f"{dashboard.url}/jobs/new")
    page.get_by_label("Name").fill("from the form")
    page.locator('[data-field="params.total_steps"] input').fill("100")
    expect(page.get_by_text("Ready to launch")).to_be_visible()
    page.get_by_role("button", name="Launch").click()

    page.wait_for_url(re.compile("/jobs/job_"))
    expect(page.get_by_role("heading", level=1, name="from the form")).to_be_visible()
    expect(page.locator("main [data-state]").first).to_have_text("Queued")
    job_id = page.url.rsplit("/", 1)[1]
    assert call_api("GET", f"/jobs/{job_id}")["params"] == {"total_steps": 100}
    assert call_api("GET", f"/jobs/{job_id}")["dataset"]["id"] == dataset_id

    job = adopt(job_id)
    job.train(10)
    expect(page.locator("main [data-state]").first).to_have_text("Running")
    chart = metric(page, "critic/score/mean")
    expect(chart.locator("[data-test=latest]")).to_have_text("0.1")
    before = chart.locator("canvas").first.screenshot()

    job.train(40)
    expect(chart.locator("[data-test=latest]")).to_have_text("0.5")
    expect(chart).to_contain_text("50 values, steps 1 to 50")
    expect(page.get_by_text("step 50 of 100")).to_be_visible()
    assert chart.locator("canvas").first.screenshot() != before

    page.locator("[data-test=stop]").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(page.locator("main [data-state]").first).to_have_text("Stopping")
    assert job.beat()
    job.settle("stopped", exit_code=75)
    expect(page.locator("main [data-state]").first).to_have_text("Stopped")
    expect(page.locator("[data-test=resume]")).to_be_visible()

    call_api("DELETE", f"/jobs/{job_id}")
    call_api("DELETE", f"/datasets/{dataset_id}")


def test_a_failed_job_shows_its_cause_first(logged_in: Page, dashboard, launch) -> None:  # type: ignore[no-untyped-def]
    job = launch("will fail")
    job.train(1)
    job.send(
        {
            "kind": "log",
            "time": "2026-01-01T00:00:00Z",
            "stream": "stderr",
            "lines": ["Traceback (most recent call last):", "MemoryError: no room"],
        }
    )
    job.settle("failed", exit_code=1, reason="The process ran out of memory.", cause="out_of_memory")

    logged_in.goto(f"{dashboard.url}/jobs/{job.id}")

    failure = logged_in.locator("[data-test=failure]")
    expect(failure).to_contain_text("The process ran out of memory.")
    expect(failure).to_contain_text(re.compile(r"Exit code\s*1"))
    expect(failure).to_contain_text("Suggested fix")
    expect(failure).to_contain_text("MemoryError: no room")
    top = failure.bounding_box()
    charts = logged_in.get_by_role("tablist").bounding_box()
    assert top is not None
    assert charts is not None
    assert top["y"] < charts["y"]

    logged_in.locator("[data-test=resume]").click()
    logged_in.get_by_role("dialog").get_by_role("button", name="Resume").click()
    expect(logged_in.locator("main [data-state]").first).to_have_text("Queued")
    expect(failure).to_have_count(0)


def test_the_page_catches_up_when_the_stream_comes_back(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    launch: Callable[..., Any],
) -> None:
    job = launch("with a gap")
    job.train(5)
    logged_in.route("**/events?*", lambda route: route.abort())
    logged_in.goto(f"{dashboard.url}/jobs/{job.id}")
    chart = metric(logged_in, "critic/score/mean")
    expect(chart).to_contain_text("5 values, steps 1 to 5")
    expect(logged_in.locator("[data-test=connection]")).to_contain_text("Connection lost")
    job.train(20)

    logged_in.unroute("**/events?*")

    expect(logged_in.locator("[data-test=connection]")).to_contain_text("Live", timeout=20_000)
    expect(chart).to_contain_text("25 values, steps 1 to 25")


def test_any_other_metric_is_charted_on_demand_and_kept_in_the_address(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    launch: Callable[..., Any],
) -> None:
    job = launch("with more metrics")
    job.train(3)
    logged_in.goto(f"{dashboard.url}/jobs/{job.id}")
    expect(metric(logged_in, "critic/score/mean")).to_be_visible()

    logged_in.locator("[data-test=add-chart]").click()
    logged_in.keyboard.type("clipfrac")
    logged_in.keyboard.press("Enter")

    expect(metric(logged_in, "actor/pg_clipfrac")).to_contain_text("3 values, steps 1 to 3")
    logged_in.reload()
    expect(metric(logged_in, "actor/pg_clipfrac")).to_be_visible()


def test_dragging_over_a_chart_zooms_all_of_them(logged_in: Page, dashboard, launch) -> None:  # type: ignore[no-untyped-def]
    job = launch("to be zoomed")
    job.train(30)
    logged_in.goto(f"{dashboard.url}/jobs/{job.id}")
    charts = logged_in.locator("figure.chart")
    metric(logged_in, "critic/score/mean").wait_for()
    # Charts below change the height of the page as they are drawn.
    expect(charts.filter(has=logged_in.locator("canvas"))).to_have_count(charts.count())
    dragged = metric(logged_in, "critic/score/mean").locator("canvas").first
    box = dragged.bounding_box()
    assert box is not None
    other = metric(logged_in, "actor/entropy").locator("canvas").first
    before = other.screenshot()

    # Unlike the mouse's own calls, this waits until the chart stands still.
    dragged.drag_to(
        dragged,
        source_position={"x": box["width"] * 0.4, "y": 60},
        target_position={"x": box["width"] * 0.7, "y": 90},
        steps=6,
    )

    resets = logged_in.get_by_role("button", name="Reset zoom")
    expect(resets).to_have_count(charts.count())
    assert other.screenshot() != before
    resets.first.click()
    expect(resets).to_have_count(0)


def test_tabs_are_walked_with_the_arrow_keys(logged_in: Page, dashboard, launch) -> None:  # type: ignore[no-untyped-def]
    job = launch("for the keyboard")
    logged_in.goto(f"{dashboard.url}/jobs/{job.id}")

    logged_in.get_by_role("tab", name="Charts").focus()
    logged_in.keyboard.press("ArrowRight")

    expect(logged_in.get_by_role("tab", name="Logs")).to_be_focused()
    expect(logged_in).to_have_url(re.compile(r"tab=logs"))
    logged_in.keyboard.press("End")
    expect(logged_in.get_by_role("tab", name="Manifest")).to_have_attribute("aria-selected", "true")
