"""The dashboard over a whole platform: what a person does, with a run that really trains."""

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from trellis_api.auth.login_link import create_login_link
from trellis_testing.waiting import wait_until

pytestmark = [pytest.mark.browser, pytest.mark.training, pytest.mark.smoke, pytest.mark.timeout(600)]

#: Starting the engine on two busy cores.
STARTED_WITHIN_MS = 240_000
#: A worker reading a small file.
READ_WITHIN_MS = 60_000


def test_a_real_run_is_launched_watched_and_stopped_from_the_page(
    rig: Any, page: Page, tmp_path: Path
) -> None:
    settings = rig.platform.settings
    model = rig.starter()["model"]
    rows = settings.data_root / "starter" / "seed-1" / "data" / "sft.jsonl"
    with rig.inside():
        page.goto(create_login_link(settings))
    page.get_by_role("heading", level=1, name="Overview").wait_for()

    page.goto(f"{rig.platform.url}/datasets?upload=1")
    page.get_by_role("dialog").locator("input[type=file]").set_input_files(
        shutil.copy(rows, tmp_path / "sums-from-the-page.jsonl")
    )
    page.get_by_role("dialog").get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url(re.compile("/datasets/ds_"))
    dataset = page.url.rsplit("/", 1)[1].split("?")[0]
    expect(page.get_by_role("tab", name="Sample")).to_be_visible(timeout=READ_WITHIN_MS)

    page.goto(f"{rig.platform.url}/jobs/new?recipe=sft&model={model}&dataset={dataset}")
    page.get_by_label("Name").fill("from the page")
    page.locator('[data-field="params.total_steps"] input').fill("10000")
    expect(page.get_by_text("Ready to launch")).to_be_visible()
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url(re.compile("/jobs/job_"))
    job = page.url.rsplit("/", 1)[1].split("?")[0]

    chart = page.locator('[data-metric="train/loss"]')
    latest = chart.locator("[data-test=latest]")
    expect(latest).to_be_visible(timeout=STARTED_WITHIN_MS)
    seen = latest.inner_text()
    drawn = chart.locator("canvas").first.screenshot()
    expect(latest).not_to_have_text(seen)
    # The number may change a frame before the curve.
    wait_until(lambda: chart.locator("canvas").first.screenshot() != drawn, 30, "the curve is drawn anew")

    page.locator("[data-test=stop]").click()
    page.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(page.locator("main [data-state]").first).to_have_text("Stopped", timeout=STARTED_WITHIN_MS)

    left_at = rig.latest_step(job)
    assert [each["step"] for each in rig.client.pages(f"/jobs/{job}/checkpoints")] == [left_at]
    expect(page.locator("[data-test=resume]")).to_be_visible()
    rig.expect_nothing_left(job)
