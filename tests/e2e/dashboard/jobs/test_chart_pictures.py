"""Charts as pictures and over the whole screen: what a reader takes along looks like the page."""

import re
import struct
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Locator, Page, expect

pytestmark = pytest.mark.browser
#: Pixels of a picture for one of the page.
RATIO = 2


def save(page: Page, chart: Locator) -> tuple[str, Path]:
    """Save a chart's picture; returns its name and where it lies."""
    chart.hover()
    with page.expect_download() as download:
        chart.locator("[data-test=picture]").click()
    return download.value.suggested_filename, download.value.path()


def measure(picture: Path) -> tuple[int, int]:
    """Read width and height from a PNG's head."""
    head = picture.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", head[16:24])
    return int(width), int(height)


def test_a_curve_is_saved_with_its_title_and_legend(logged_in: Page, dashboard: Any, launch: Any) -> None:
    job = launch("to be printed")
    job.train(20)
    logged_in.goto(f"{dashboard.url}/jobs/{job.id}")
    chart = logged_in.locator('figure[data-metric="critic/score/mean"]')
    canvas = chart.locator("canvas").first
    canvas.wait_for()
    box = canvas.bounding_box()
    assert box is not None

    name, picture = save(logged_in, chart)

    assert name == "to be printed-critic-score-mean.png"
    width, height = measure(picture)
    assert width > box["width"] * RATIO
    # Title, key and one row of the legend stand above the drawing.
    assert height > (box["height"] + 60) * RATIO


def test_a_chart_fills_the_screen_and_keeps_its_range(logged_in: Page, dashboard: Any, launch: Any) -> None:
    job = launch("to be enlarged")
    job.train(20)
    logged_in.goto(f"{dashboard.url}/jobs/{job.id}")
    chart = logged_in.locator('figure[data-metric="critic/score/mean"]')
    canvas = chart.locator("canvas").first
    canvas.wait_for()
    small = canvas.bounding_box()
    chart.hover()
    chart.locator("[data-test=y-range]").click()
    before = canvas.screenshot()
    chart.get_by_label("y max").fill("3")
    expect(logged_in).to_have_url(re.compile("scale="))
    logged_in.wait_for_timeout(500)
    assert canvas.screenshot() != before
    logged_in.keyboard.press("Escape")

    chart.locator("[data-test=full]").click()

    expect(chart.locator("[data-test=full]")).to_have_attribute("aria-pressed", "true")
    logged_in.wait_for_timeout(500)
    large = canvas.bounding_box()
    assert small is not None
    assert large is not None
    assert large["height"] > 2 * small["height"]
    chart.locator("[data-test=full]").click()
    expect(chart.locator("[data-test=full]")).to_have_attribute("aria-pressed", "false")


def test_drawings_of_parameters_are_saved_in_their_colours(
    logged_in: Page, dashboard: Any, launch: Any
) -> None:
    ids = []
    for rate in (1e-6, 2e-6, 3e-6, 4e-6):
        job = launch(f"rate {rate}", params={"learning_rate": rate})
        job.train(round(rate * 1e7))
        ids.append(job.id)
    logged_in.goto(f"{dashboard.url}/jobs/compare?ids={','.join(ids)}&tab=parameters")
    parts = logged_in.locator("section.part", has=logged_in.locator("[data-test=picture]"))
    expect(parts).to_have_count(2)

    sizes = []
    for part in parts.all():
        drawing = part.locator("svg[role=application]").bounding_box()
        assert drawing is not None
        name, picture = save(logged_in, part)
        assert name.endswith(".png")
        sizes.append((measure(picture), drawing))

    for (width, height), drawing in sizes:
        assert width > drawing["width"] * RATIO
        assert height > (drawing["height"] + 60) * RATIO
