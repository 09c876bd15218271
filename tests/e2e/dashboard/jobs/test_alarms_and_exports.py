"""What a run warns of, and what becomes of its checkpoints."""

import re
import shutil
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from trellis_api.core.settings import Settings
from trellis_api.jobs import service
from trellis_api.jobs.exports.orders import ExportOrder
from trellis_api.models.registration import inspect_export, register_export
from trellis_api.models.service import model_folder
from trellis_contracts.states import JobState
from trellis_testing.pages import choose_from_menu, choose_from_select

pytestmark = pytest.mark.browser
TIME = "2026-01-01T00:00:00Z"


def broken_metrics(step: int) -> dict[str, Any]:
    """A step whose loss is no number."""
    return {"kind": "metrics", "time": TIME, "step": step, "values": {"actor/pg_loss": "NaN"}}


def save_checkpoint(job: Any, data_root: Any, step: int, accuracy: float) -> None:
    """A checkpoint with weights, as the hook reports it."""
    folder = data_root / "jobs" / job.id / "checkpoints" / f"global_step_{step}"
    shutil.copytree(data_root / "models" / "tiny", folder / "actor" / "huggingface")
    values = {"val-core/addition/acc/mean@1": accuracy}
    job.send(
        {"kind": "metrics", "time": TIME, "step": step, "values": values},
        {
            "kind": "checkpoint",
            "time": TIME,
            "step": step,
            "path": str(folder),
            "hf_path": str(folder / "actor" / "huggingface"),
            "size_bytes": 4096,
            "metrics": values,
        },
    )


def test_an_alarm_arrives_while_the_page_is_open_and_is_found_in_the_list(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    launch: Callable[..., Any],
) -> None:
    page = logged_in
    sick, well = launch("sick"), launch("well", resources={"gpus": 1})
    sick.train(5)
    well.train(5)
    page.goto(f"{dashboard.url}/jobs/{sick.id}")
    expect(page.locator('[data-metric="critic/score/mean"]')).to_be_visible()
    expect(page.locator("[data-test=alarms]")).to_have_count(0)

    sick.send(broken_metrics(6))

    alarm = page.locator("[data-test=alarms] [data-code]")
    expect(alarm).to_contain_text("Loss is not finite")
    expect(alarm).to_contain_text("at step 6")
    expect(alarm).to_contain_text("Suggested fix:")
    expect(page.locator('[data-metric="actor/pg_loss"]')).to_contain_text("Loss is not finite, at step 6")

    page.goto(f"{dashboard.url}/jobs")
    expect(page.locator(f'[data-job="{sick.id}"]')).to_contain_text("1 alarm")
    expect(page.locator(f'[data-job="{well.id}"]')).not_to_contain_text("alarm")
    page.get_by_text("With alarms").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    expect(page).to_have_url(re.compile("alarms=1"))


def test_the_best_checkpoint_is_found_by_any_metric_and_kept(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    launch: Callable[..., Any],
    call_api: Callable[..., Any],
) -> None:
    page = logged_in
    job = launch("with checkpoints")
    for step, accuracy in ((5, 0.5), (10, 0.9), (15, 0.7)):
        save_checkpoint(job, dashboard.data_root, step, accuracy)
        job.send({"kind": "metrics", "time": TIME, "step": step, "values": {"actor/nll": 20.0 - step}})
    job.settle("succeeded", exit_code=0)
    page.goto(f"{dashboard.url}/jobs/{job.id}?tab=checkpoints")
    page.locator("[data-test=best-by]").click()
    page.get_by_text("Validation accuracy ·").click()
    expect(page.locator('[data-step="10"]')).to_contain_text("best")
    expect(page.locator('[data-step="10"]')).to_contain_text("0.9")
    verdict = page.locator("[data-test=best-verdict]")
    expect(verdict).to_have_text("Best: step 10 (highest Validation accuracy).")

    page.locator("[data-test=best-by]").click()
    page.keyboard.type("nll")
    page.locator(".n-base-select-option", has_text="actor/nll").filter(visible=True).click()
    expect(verdict).to_have_text("Best: step 15 (lowest actor/nll).")
    expect(page.locator('[data-step="15"]')).to_contain_text("best")
    choose_from_select(page, page.locator("[data-test=best-mode]"), "highest")
    expect(verdict).to_have_text("Best: step 5 (highest actor/nll).")

    choose_from_menu(page, page.get_by_role("button", name="More actions for step 5"), "Pin")
    expect(page.locator('[data-step="5"]')).to_contain_text("pinned")
    by_step = {each["step"]: each for each in call_api("GET", f"/jobs/{job.id}/checkpoints")["items"]}
    assert by_step[5]["is_kept"]

    choose_from_menu(page, page.get_by_role("button", name="More actions for step 15"), "Delete checkpoint")
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.locator('[data-step="15"]')).to_contain_text("pruned")


def test_a_checkpoint_is_exported_and_trained_on(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    launch: Callable[..., Any],
    call_api: Callable[..., Any],
    database: Any,
    model: dict[str, Any],
) -> None:
    page = logged_in
    job = launch("to be exported")
    save_checkpoint(job, dashboard.data_root, 5, 0.75)
    job.settle("succeeded", exit_code=0)
    page.goto(f"{dashboard.url}/jobs/{job.id}?tab=checkpoints")
    page.locator('[data-step="5"]').get_by_role("button", name="Export").click()
    page.get_by_role("dialog").get_by_label("Model name").fill("graduate")
    page.get_by_role("dialog").get_by_role("button", name="Export").click()

    page.wait_for_url(lambda url: "/jobs/job_" in url and job.id not in url)
    export_id = page.url.rsplit("/", 1)[1]
    expect(page.locator("[data-test=export]")).to_contain_text("to be exported")
    expect(page.get_by_role("tab", name="Charts")).to_have_count(0)
    finish_export(database, dashboard.data_root, export_id)

    page.reload()
    page.locator("[data-test=exported-model]").click()
    page.wait_for_url(re.compile("/models/mdl_"))
    lineage = page.locator("[data-test=lineage]")
    expect(lineage.locator("li", has_text="to be exported").get_by_role("link", name="tiny")).to_be_visible()
    expect(lineage.locator("svg .node")).to_have_count(4)

    page.get_by_role("button", name="Train", exact=True).click()
    page.wait_for_url(re.compile("/jobs/new"))
    expect(page.locator("[data-test=model]")).to_contain_text("graduate")
    page.goto(f"{dashboard.url}/jobs?kind=export")
    expect(page.locator("tbody tr")).to_have_count(1)
    models = {each["name"]: each["id"] for each in call_api("GET", "/models")["items"]}
    call_api("DELETE", f"/models/{models['graduate']}")


def finish_export(database: Any, data_root: Any, job_id: str) -> None:
    """What the export's process and the reconciling worker would do."""
    settings = Settings(data_root=data_root)
    with database.write() as session:
        claim = service.claim_for_launch(session, job_id=job_id)
    assert claim is not None
    order = ExportOrder.model_validate(claim.job.export)
    shutil.copytree(data_root / "models" / "tiny", model_folder(settings, order.model_id))
    facts = inspect_export(settings, order)
    with database.write() as session:
        service.settle(
            session, job_id=job_id, attempt=claim.job.attempt, state=JobState.SUCCEEDED, exit_code=0
        )
        job = service.get_locked_job(session, job_id=job_id)
        register_export(session, settings, job=job, facts=facts)
