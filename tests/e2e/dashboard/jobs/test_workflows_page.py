"""Workflow files: uploaded with all faults told, listed with their jobs, kept while one of them lasts."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from trellis_api.core.database import Database
from trellis_api.jobs.models import Job

pytestmark = pytest.mark.browser
WRONG = "def workflow(model): ...\nasync def judge(answer): ...\n"
RIGHT = "async def solve(task, model):\n    return 1.0\n"


def test_a_workflow_is_uploaded_filtered_by_and_deleted_when_nothing_uses_it(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    queue: Callable[..., Any],
    database: Database,
    call_api: Callable[..., Any],
) -> None:
    logged_in.goto(f"{dashboard.url}/environments")
    logged_in.get_by_role("main").get_by_role("link", name="Agent code").click()
    expect(logged_in.get_by_role("heading", level=1)).to_have_text("Agent code")
    logged_in.locator("[data-test=add-workflow]").click()
    dialog = logged_in.get_by_role("dialog")
    dialog.get_by_label("Name").fill("react")
    dialog.get_by_label("Python").fill(WRONG)
    dialog.get_by_role("button", name="Validate and save").click()
    faults = dialog.locator("[data-test=code-faults] li")
    expect(faults).to_have_count(3)
    expect(faults.first).to_contain_text("must be async")
    dialog.get_by_label("Python").fill(RIGHT)
    dialog.get_by_role("button", name="Validate and save").click()
    expect(dialog).to_be_hidden()

    row = logged_in.locator("[data-workflow]", has=logged_in.get_by_role("button", name="react", exact=True))
    expect(row).to_contain_text("solve()")
    expect(row).to_contain_text("No jobs yet")
    row.get_by_role("button", name="react", exact=True).click()
    expect(logged_in.get_by_role("dialog").locator("pre")).to_have_text(RIGHT.strip())
    logged_in.keyboard.press("Escape")

    (workflow,) = call_api("GET", "/workflows")["items"]
    job = queue("uses it")
    queue("does not")
    with database.write() as session:
        stored = session.get(Job, job["id"])
        assert stored is not None
        stored.params = {**stored.params, "workflow": workflow["id"]}
        session.add(stored)
    logged_in.goto(f"{dashboard.url}/jobs?workflow={workflow['id']}")
    expect(logged_in.locator("[data-test=filter-workflow]")).to_contain_text("react")
    expect(logged_in.get_by_role("link", name="uses it")).to_be_visible()
    expect(logged_in.get_by_role("link", name="does not")).to_have_count(0)

    logged_in.goto(f"{dashboard.url}/workflows")
    expect(row.get_by_role("link", name="uses it")).to_be_visible()
    expect(row).to_contain_text("Used by uses it")
    row.get_by_role("button", name="Delete react").click()
    logged_in.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(logged_in.get_by_text("'react' is used by uses it.")).to_be_visible()
    call_api("POST", f"/jobs/{job['id']}/stop")
    row.get_by_role("button", name="Delete react").click()
    logged_in.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(logged_in.get_by_text("No agent code yet")).to_be_visible()


def test_a_folder_is_uploaded_as_a_package(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    call_api: Callable[..., Any],
    tmp_path: Path,
) -> None:
    folder = tmp_path / "stock-agent"
    (folder / "lib").mkdir(parents=True)
    (folder / "workflow.py").write_text("def workflow(task, model): ...\n")
    (folder / "lib" / "data.json").write_text("[]")
    logged_in.goto(f"{dashboard.url}/workflows")
    logged_in.locator("[data-test=add-package]").click()
    dialog = logged_in.get_by_role("dialog")
    dialog.locator("[data-test=folder-input]").set_input_files(folder)
    expect(dialog.get_by_label("Name")).to_have_value("stock-agent")
    dialog.get_by_role("button", name="Check and upload").click()
    expect(dialog.locator("[data-test=package-faults] li")).to_contain_text("must be async")
    (folder / "workflow.py").write_text(RIGHT)
    dialog.locator("[data-test=folder-input]").set_input_files(folder)
    dialog.get_by_role("button", name="Check and upload").click()
    expect(dialog).to_be_hidden()

    row = logged_in.locator("[data-workflow]")
    expect(row).to_contain_text("solve()")
    expect(row).to_contain_text("2 files")
    (made,) = call_api("GET", "/workflows")["items"]
    assert made["files"] == {"lib/data.json": 2, "workflow.py": len(RIGHT)}
    call_api("DELETE", f"/workflows/{made['id']}")
