"""Runs side by side: chosen in the list, drawn together, told apart by settings and figures."""

import re

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


def test_runs_are_chosen_in_the_list_and_compared(logged_in: Page, dashboard, launch) -> None:  # type: ignore[no-untyped-def]
    low, high = (launch(f"rate {rate}", params={"learning_rate": rate}) for rate in (1e-6, 2e-6))
    low.train(20)
    high.train(40)
    logged_in.goto(f"{dashboard.url}/jobs")
    logged_in.locator("[data-test=select-all]").click()
    logged_in.locator("[data-test=compare]").click()

    expect(logged_in.get_by_role("heading", level=1, name="Compare jobs")).to_be_visible()
    expect(logged_in.locator("[data-run]")).to_have_count(2)
    chart = logged_in.locator("figure[data-metric]").first
    expect(chart).to_contain_text("rate 1e-06: 20 values")
    expect(chart).to_contain_text("rate 2e-06: 40 values")

    logged_in.locator(f'[data-run="{low.id}"] [data-test=eye]').click()
    expect(chart).not_to_contain_text("rate 1e-06")
    expect(logged_in).to_have_url(re.compile(f"hidden={low.id}"))

    logged_in.get_by_role("tab", name="Settings").click()
    expect(logged_in.locator("[data-setting]")).to_have_count(1)
    expect(logged_in.locator("[data-setting=learning_rate]")).to_contain_text("2e-6")

    logged_in.get_by_role("tab", name="Metrics").click()
    logged_in.locator(f'[data-run="{low.id}"] [data-test=baseline]').click()
    expect(logged_in.locator("tr[data-metric]").first).to_contain_text("%")

    logged_in.get_by_role("tab", name="Evaluations").click()
    expect(logged_in.get_by_text("No benchmarks in common with the baseline")).to_be_visible()
    with logged_in.expect_download() as download:
        logged_in.locator("[data-test=csv-table]").click()
    assert low.id in download.value.path().read_text()


def test_settings_are_compared_over_seeds_and_the_best_run_is_cloned(  # type: ignore[no-untyped-def]
    logged_in: Page, dashboard, launch
) -> None:
    ids = []
    for rate, steps in ((1e-6, 10), (2e-6, 30)):
        for seed in (1, 2):
            job = launch(f"rate {rate} seed {seed}", params={"learning_rate": rate}, seed=seed)
            job.train(steps + seed)
            ids.append(job.id)
    logged_in.goto(f"{dashboard.url}/jobs/compare?ids={','.join(ids)}&baseline={ids[0]}")

    expect(logged_in.locator("[data-test=seed-sentence]")).to_contain_text(
        "“rate 2e-06” is better than “rate 1e-06”"
    )
    logged_in.get_by_role("tab", name="Parameters").click()
    expect(logged_in.locator("path[data-run]")).to_have_count(4)
    expect(logged_in.locator("circle[data-run]")).to_have_count(4)
    logged_in.locator("[data-test=clone-best]").click()
    expect(logged_in).to_have_url(re.compile(f"clone={ids[3]}"))


def test_a_link_without_jobs_leads_to_the_list(logged_in: Page, dashboard) -> None:  # type: ignore[no-untyped-def]
    logged_in.goto(f"{dashboard.url}/jobs/compare")

    expect(logged_in.get_by_text("No jobs selected")).to_be_visible()
