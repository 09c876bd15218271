"""Pages of the data factory, the registry and the playground on a phone: nothing is wider than the screen."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from trellis_cli.client import ApiClient
from trellis_cli.waiting import wait_for_dataset, wait_for_task

pytestmark = pytest.mark.browser

PHONE = {"width": 390, "height": 844}
LONG_WORD = "trellis" * 20
TABS = ("sample", "statistics", "quality", "duplicates", "versions", "lineage", "quarantine")
STEPS: list[dict[str, Any]] = [
    {"operator": "normalise_text"},
    {"operator": "length", "params": {"unit": "characters", "minimum": 40}},
    {"operator": "minhash_duplicates"},
    {"operator": "quality"},
    {"operator": "split"},
]
WORK_S = 120


@pytest.fixture
def dataset(api: ApiClient, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Rows with words that cannot be broken, and lines that are no rows; deleted afterwards."""
    rows = [
        {"question": f"What is {n} + {n}? {LONG_WORD}", "answer": f"It is {n + n}. " * 8} for n in range(40)
    ]
    file = tmp_path / f"questions-{LONG_WORD[:60]}.jsonl"
    file.write_text("\n".join(["no json", *(json.dumps(row) for row in rows)]))
    return wait_for_dataset(
        api, api.upload("/datasets", file, {"name": f"On a phone {LONG_WORD[:80]}"})["id"]
    )


@pytest.fixture
def run(api: ApiClient, dataset: dict[str, Any]) -> str:
    """A run of all kinds of steps on the rows, with its report; its id."""
    pipeline = {"name": f"Everything {LONG_WORD[:60]}", "description": "", "seed": 0, "steps": STEPS}
    for purpose, steps in (("quality", STEPS[3:4]), ("duplicates", STEPS[2:3]), ("pipeline", STEPS)):
        body = {
            "pipeline": {**pipeline, "steps": steps},
            "dataset": dataset["id"],
            "purpose": purpose,
            "output": {"kind": "none"},
        }
        task = api.post("/pipelines/runs", body)["task"]["id"]
        wait_for_task(api, task, timeout_s=WORK_S)
    return str(task)


#: What reaches beyond the screen, where the page as a whole does.
BEYOND = """() => {
    const { scrollWidth, clientWidth } = document.documentElement
    if (scrollWidth <= clientWidth) return []
    const isBeyond = (one) => one.getBoundingClientRect().right > clientWidth
    const beyond = [...document.querySelectorAll("main *")].filter(isBeyond)
    const names = beyond.slice(0, 8).map((one) => `${one.tagName}.${one.getAttribute("class")}`)
    return [`${scrollWidth - clientWidth} pixels`, ...names]
}"""


def _beyond(page: Page, address: str) -> list[Any]:
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    page.wait_for_load_state("networkidle")
    expect(page.locator(".n-skeleton")).to_have_count(0)
    return list(page.evaluate(BEYOND))


def test_no_page_of_the_data_factory_is_wider_than_a_phone(
    logged_in: Page, dashboard: Any, dataset: dict[str, Any], run: str
) -> None:
    logged_in.set_viewport_size(PHONE)
    steps = json.dumps([{"operator": step["operator"], "params": step.get("params", {})} for step in STEPS])
    paths = [
        *(f"/datasets/{dataset['id']}?tab={tab}" for tab in TABS),
        f"/datasets/{dataset['id']}?view=table",
        f"/pipelines/new?dataset={dataset['id']}&steps={steps}",
        f"/pipelines/runs/{run}",
        "/pipelines?tab=runs",
    ]

    too_wide = {path: found for path in paths if (found := _beyond(logged_in, dashboard.url + path))}

    assert too_wide == {}


def test_the_registry_and_the_playground_are_no_wider_than_a_phone(logged_in: Page, dashboard: Any) -> None:
    logged_in.set_viewport_size(PHONE)
    tools = json.dumps([{"type": "function", "function": {"name": LONG_WORD}}])
    paths = [
        "/registry",
        "/playground",
        f"/playground?m={LONG_WORD}&m=base&format=schema&schema={LONG_WORD}&tools={tools}&prompt={LONG_WORD}",
    ]

    too_wide = {path: found for path in paths if (found := _beyond(logged_in, dashboard.url + path))}

    assert too_wide == {}
