"""Pipelines of jobs: written as a form, drawn as a graph, walked by keyboard, stopped and run again."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import yaml
from playwright.sync_api import Page, expect
from trellis_api.core.database import Database
from trellis_api.core.settings import Settings
from trellis_api.job_pipelines.models import JobPipeline, PipelineStage
from trellis_testing.agent_work import carrying_out_agent_work
from trellis_testing.pages import choose_from_select

pytestmark = pytest.mark.browser


@pytest.fixture(autouse=True)
def worker(dashboard) -> Iterator[None]:  # type: ignore[no-untyped-def]
    """Takes pipelines further while a test lasts."""
    settings = Settings(
        data_root=dashboard.data_root, database_url=None, redis_url=None, min_free_disk_bytes=0
    )
    with carrying_out_agent_work(settings):
        yield


@pytest.fixture
def two_stages(call_api: Callable[..., Any], model, dataset, tidy) -> Iterator[dict[str, Any]]:  # type: ignore[no-untyped-def]
    """A pipeline that was not started: a training, and one that starts from its model."""
    common = {"recipe": "grpo", "dataset": dataset["id"], "preset": "cpu-tiny"}
    stages = [
        {"id": "first", "title": "First steps", "model": {"base": model["id"]}, **common},
        {"id": "second", "title": "Further steps", "model": {"stage": "first"}, **common},
    ]
    made = call_api("POST", "/job-pipelines", {"name": "In two steps", "stages": stages, "start": False})
    yield made
    if call_api("GET", f"/job-pipelines/{made['id']}")["can_delete"]:
        call_api("DELETE", f"/job-pipelines/{made['id']}")


def test_a_pipeline_is_started_stopped_and_a_stage_run_again(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    two_stages: dict[str, Any],
    adopt: Callable[[str], Any],
    call_api: Callable[..., Any],
) -> None:
    logged_in.goto(f"{dashboard.url}/job-pipelines")
    logged_in.get_by_role("link", name="In two steps").click()
    first, second = logged_in.locator("[data-stage=first]"), logged_in.locator("[data-stage=second]")
    panel = logged_in.locator("[data-test=stage-panel]")
    expect(first).to_have_attribute("data-state", "waiting")

    first.focus()
    first.press("ArrowRight")
    expect(second).to_be_focused()
    expect(panel.get_by_role("heading", name="Further steps")).to_be_visible()
    second.press("ArrowLeft")

    logged_in.get_by_role("button", name="Start", exact=True).click()
    expect(first).to_have_attribute("data-state", "running")
    expect(second).to_have_attribute("data-state", "waiting")
    read = call_api("GET", f"/job-pipelines/{two_stages['id']}")
    job = adopt(read["stages"][0]["job"]["id"])
    job.train(5)
    expect(panel.get_by_text("Step 5 of 100")).to_be_visible()

    logged_in.locator("[data-test=stop-pipeline]").click()
    logged_in.get_by_role("dialog").get_by_role("button", name="Stop").click()
    expect(logged_in.locator("[data-test=pipeline-state]")).to_have_text("Stopping")
    assert job.beat()
    job.settle("stopped")
    expect(first).to_have_attribute("data-state", "stopped")
    expect(logged_in.locator("[data-test=pipeline-state]")).to_have_text("Stopped")

    logged_in.locator("[data-test=rerun-stage]").click()
    logged_in.get_by_role("dialog").get_by_role("button", name="Rerun").click()
    expect(first).to_have_attribute("data-state", "running")
    again = call_api("GET", f"/job-pipelines/{two_stages['id']}")["stages"][0]["job"]["id"]
    assert again != job.id
    adopt(again).settle("failed", reason="The disk is full.", cause="disk_full")
    expect(first).to_have_attribute("data-state", "failed")
    expect(second).to_have_attribute("data-state", "blocked")
    expect(panel).to_contain_text("The disk is full.")


def test_a_pipeline_is_made_from_a_template_as_a_form_or_as_yaml(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    model: dict[str, Any],
    dataset: dict[str, Any],
    tidy: None,
    call_api: Callable[..., Any],
) -> None:
    logged_in.goto(f"{dashboard.url}/job-pipelines/new")
    logged_in.locator("[data-template=reasoning]").click()
    create = logged_in.locator("[data-test=create-pipeline]")
    expect(create).to_be_disabled()
    for stage in ("sft", "grpo"):
        field = logged_in.locator(f"fieldset[data-stage={stage}] [data-field$='.dataset']")
        choose_from_select(logged_in, field.locator(".n-base-selection"), "addition")
    expect(create).to_be_enabled()
    logged_in.get_by_text("YAML", exact=True).click()
    written = logged_in.locator("#pipeline-yaml")
    document = yaml.safe_load(written.input_value())
    assert [stage["id"] for stage in document["stages"]] == ["sft", "grpo", "evaluation"]

    # Without its benchmark, which this platform has not brought; and with a mistake first.
    document["stages"] = document["stages"][:2]
    document["stages"][0]["model"]["base"] = "tiny"
    right = yaml.safe_dump(document, sort_keys=False)
    wrong = right.replace("stage: sft", "stage: stf")
    written.fill(wrong)
    line = next(number for number, text in enumerate(wrong.splitlines(), 1) if "stf" in text)
    expect(logged_in.locator(f"[data-line='{line}'].wrong")).to_be_visible()
    expect(logged_in.get_by_role("alert")).to_contain_text("needs 'stf'")
    expect(create).to_be_disabled()
    expect(logged_in.locator("[data-test=form-obstacle]")).to_contain_text("Fix the errors")
    expect(logged_in.get_by_role("radio", name="Form")).to_be_disabled()
    logged_in.get_by_role("button", name=f"Line {line}:").click()
    logged_in.keyboard.type(right.splitlines()[line - 1])
    expect(logged_in.locator("[data-test=yaml-good]")).to_be_visible()
    logged_in.get_by_text("Form", exact=True).click()
    expect(logged_in.locator("fieldset[data-stage]")).to_have_count(2)
    logged_in.get_by_text("YAML", exact=True).click()
    expect(logged_in.locator("[data-test=yaml-good]")).to_be_visible()
    create.click()

    expect(logged_in.locator("[data-stage=grpo]")).to_have_attribute("data-state", "waiting")
    made = call_api("GET", "/job-pipelines")["items"][0]
    assert made["state"] == "idle"
    assert len(made["stages"]) == 2
    call_api("DELETE", f"/job-pipelines/{made['id']}")


def test_a_stage_that_was_skipped_says_whose_result_it_took_over(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    two_stages: dict[str, Any],
    call_api: Callable[..., Any],
    database: Database,
) -> None:
    stages = [stage["request"] for stage in two_stages["stages"]]
    body = {"name": "Once more", "stages": stages, "start": False}
    again = call_api("POST", "/job-pipelines", body)
    with database.write() as session:
        pipeline = session.get(JobPipeline, again["id"])
        assert pipeline is not None
        pipeline.state = "succeeded"
        session.add(pipeline)
        for name, source in (("first", two_stages["id"]), ("second", again["id"])):
            stage = session.get(PipelineStage, (again["id"], name))
            assert stage is not None
            stage.state, stage.reused_from = "skipped", source
            session.add(stage)

    logged_in.goto(f"{dashboard.url}/job-pipelines/{again['id']}")
    first, second = logged_in.locator("[data-stage=first]"), logged_in.locator("[data-stage=second]")
    expect(first).to_have_attribute("data-state", "skipped")
    first.click()
    said = logged_in.locator("[data-test=reused]")
    expect(said.get_by_role("link", name="In two steps")).to_be_visible()
    second.click()
    expect(said).to_contain_text("an earlier run of this workflow.")
    call_api("DELETE", f"/job-pipelines/{again['id']}")
