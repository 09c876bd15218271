"""What a training made is compared with what it began from, and one checkpoint with another."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect
from trellis_testing.accessibility import check
from trellis_testing.pages import choose_from_menu

pytestmark = pytest.mark.browser
TIME = "2026-01-01T00:00:00Z"


def _save_checkpoint(job: Any, data_root: Path, step: int) -> None:
    """A checkpoint without weights in Hugging Face format: those are made when it is served."""
    folder = data_root / "jobs" / job.id / "checkpoints" / f"global_step_{step}"
    folder.mkdir(parents=True)
    (folder / "weights.pt").write_bytes(bytes(16))
    job.send({"kind": "checkpoint", "time": TIME, "step": step, "path": str(folder), "size_bytes": 16})


@pytest.fixture
def asked(logged_in: Page) -> list[str]:
    """Stand-ins for the engines; the models that were asked."""
    models: list[str] = []

    def answer(route: Route) -> None:
        models.append(json.loads(route.request.post_data or "{}")["model"])
        event = {"choices": [{"delta": {"content": "2"}, "finish_reason": "stop"}]}
        body = f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n"
        route.fulfill(status=200, content_type="text/event-stream", body=body)

    logged_in.route("**/v1/chat/completions", answer)
    logged_in.route("**/api/v1/**/endpoint", lambda route: route.fulfill(status=202, json={}))
    return models


def _expect_columns(page: Page, *names: str) -> None:
    columns = page.locator("[data-test=column]")
    expect(columns).to_have_count(len(names))
    for at, name in enumerate(names):
        expect(columns.nth(at).locator(".choice")).to_contain_text(name)


def test_buttons_fill_in_the_base_and_columns_take_any_step(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    launch: Callable[..., Any],
    model: dict[str, Any],
    asked: list[str],
) -> None:
    page = logged_in
    job = launch("sums of numbers")
    for step in (100, 200):
        _save_checkpoint(job, dashboard.data_root, step)
    job.settle("succeeded", exit_code=0)

    page.goto(f"{dashboard.url}/jobs/{job.id}")
    page.locator("[data-test=playground]").click()
    _expect_columns(page, "tiny", "sums of numbers @ 200")
    expect(page).to_have_url(re.compile(f"m=tiny&m={job.id}:200"))

    page.goto(f"{dashboard.url}/jobs/{job.id}?tab=checkpoints")
    choose_from_menu(page, page.get_by_role("button", name="More actions for step 200"), "Compare with base")
    _expect_columns(page, "tiny", "sums of numbers @ 200")

    page.get_by_role("button", name="Choose a checkpoint…").first.click()
    dialog = page.get_by_role("dialog")
    dialog.locator(".n-base-selection").first.click()
    page.locator(".n-base-select-option", has_text="sums of numbers").filter(visible=True).click()
    expect(dialog).to_contain_text("Step 200")
    dialog.locator(".n-base-selection").nth(1).click()
    page.locator(".n-base-select-option", has_text="Step 100").filter(visible=True).click()
    assert check(page) == []
    dialog.get_by_role("button", name="Use").click()
    _expect_columns(page, "sums of numbers @ 100", "sums of numbers @ 200")
    page.get_by_label("Prompt for all columns").fill("1+1=")
    page.get_by_label("Prompt for all columns").press("Control+Enter")
    expect(page.get_by_role("button", name="sums of numbers @ 100 is better")).to_be_visible()
    assert sorted(asked) == [f"{job.id}:100", f"{job.id}:200"]


def test_a_trained_model_is_compared_with_its_base(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    call_api: Callable[..., Any],
    model: dict[str, Any],
) -> None:
    page = logged_in
    base = call_api("GET", f"/models/{model['id']}")
    trained = {**base, "id": "mdl_bbbbbbbbbbbb", "name": "graduate"}
    trained["lineage"] = {**base["lineage"], "model_id": model["id"], "model_name": "as it was called"}
    page.route("**/api/v1/models/mdl_bbbbbbbbbbbb", lambda route: route.fulfill(json=trained))
    # What the page is to know of it besides.
    page.route("**/api/v1/models/mdl_bbbbbbbbbbbb/*", lambda route: route.fulfill(status=404, json={}))

    with page.expect_response(f"**/api/v1/models/{model['id']}"):
        page.goto(f"{dashboard.url}/models/mdl_bbbbbbbbbbbb")
    page.get_by_role("button", name="Open in playground").click()

    _expect_columns(page, "graduate", "tiny")
