"""The launch form: what it says of mistakes, and what it hands to scripts."""

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser


@pytest.fixture
def form(logged_in: Page, dashboard, model: dict[str, Any], dataset: dict[str, Any], tidy: None) -> Page:  # type: ignore[no-untyped-def]
    """The form with the only model and the only dataset chosen by itself."""
    logged_in.goto(f"{dashboard.url}/jobs/new")
    expect(logged_in.get_by_text("Ready to launch")).to_be_visible()
    return logged_in


def test_a_misspelt_engine_key_is_named_and_put_right_with_one_click(form: Page) -> None:
    form.locator("[data-test=overrides-section] summary").click()
    form.get_by_role("button", name="Add override").click()
    form.get_by_label("Key", exact=True).fill("actor_rollout_ref.actor.optim.weight_decai=0.1")

    field = form.locator('[data-field="overrides"]')
    expect(field).to_contain_text("Unknown engine setting")
    expect(form.get_by_text("1 error")).to_be_visible()

    field.get_by_role("button", name="Use actor_rollout_ref.actor.optim.weight_decay").click()
    expect(form.get_by_text("1 error")).to_have_count(0)
    expect(form.get_by_label("Key", exact=True)).to_have_value("actor_rollout_ref.actor.optim.weight_decay")
    expect(form.get_by_label("Value", exact=True)).to_have_value("0.1")


def test_a_parameter_out_of_range_is_marked_where_it_stands(form: Page) -> None:
    field = form.locator('[data-field="params.group_size"]')
    field.locator("input").fill("0")

    expect(field.locator(".error")).to_be_visible()
    expect(field.locator("input")).to_have_attribute("aria-invalid", "true")

    field.get_by_role("button", name="Reset").click()
    expect(field.locator(".error")).to_have_count(0)


def test_what_is_not_a_number_is_said_and_stops_the_launch(form: Page) -> None:
    field = form.locator('[data-field="params.learning_rate"]')
    field.locator("input").fill("fast")
    expect(field).to_contain_text("Not a number.")

    form.get_by_role("button", name="Launch").click()

    expect(form).to_have_url(re.compile("/jobs/new"))
    expect(field.locator("input")).to_be_focused()


def test_a_mistake_in_a_folded_parameter_opens_the_fold(form: Page) -> None:
    form.get_by_placeholder("Search settings").fill("warm-up")
    form.locator('[data-field="params.warmup_ratio"] input').fill("7")
    form.get_by_placeholder("Search settings").fill("")

    expect(form.locator('[data-field="params.warmup_ratio"] .error')).to_be_visible()


def test_one_switch_shows_all_settings(form: Page) -> None:
    for name in ("group_size", "learning_rate", "reward"):
        expect(form.locator(f'[data-field="params.{name}"]')).to_be_visible()
    expect(form.locator('[data-field="params.weight_decay"]')).to_have_count(0)
    for part in ("afterwards", "evaluate", "report", "sweep", "overrides"):
        expect(form.locator(f"[data-test={part}-section]")).not_to_have_attribute("open", "")

    form.get_by_role("switch", name="All settings", exact=True).click()

    for name in ("weight_decay", "temperature", "kl_coefficient", "lora_alpha"):
        expect(form.locator(f'[data-field="params.{name}"]')).to_be_visible()
    expect(form.locator("details", has_text="Advanced")).to_have_count(0)


def test_the_preview_shows_what_the_parameter_does_to_the_engine(form: Page) -> None:
    form.locator('[data-field="params.group_size"] input').fill("4")

    preview = form.locator("[data-test=preview]")
    preview.get_by_placeholder("Search keys and values").fill("rollout.n")
    expect(preview.locator("li", has_text=re.compile(r"^n\s*4$"))).to_be_visible()


def test_the_memory_that_the_run_will_need_is_shown_phase_by_phase(form: Page) -> None:
    preview = form.locator("[data-test=preview]")
    line = preview.locator("[data-test=memory-line]")
    expect(line).to_contain_text("Peak memory")

    line.click()

    panel = preview.locator("[data-test=memory]")
    expect(preview.get_by_role("tab", name="Memory")).to_have_attribute("aria-selected", "true")
    for phase in ("rollout", "log_probs", "update"):
        expect(panel.locator(f"[data-phase={phase}]")).to_be_visible()
    expect(panel.get_by_text("peak", exact=True)).to_have_count(1)
    panel.get_by_text("How this was estimated").click()
    expect(panel.get_by_role("rowheader", name="KV cache").first).to_be_visible()


def test_the_request_for_scripts_launches_the_same_job(form: Page, call_api: Callable[..., Any]) -> None:
    form.locator('[data-field="params.total_steps"] input').fill("7")
    form.get_by_role("tab", name="Request").click()
    form.locator("[data-test=preview]").get_by_text("JSON", exact=True).click()
    request = json.loads(form.locator("[data-test=preview] pre").inner_text())

    job = call_api("POST", "/jobs", request)

    assert job["params"] == {"total_steps": 7}
    assert job["recipe"] == "grpo"
    assert job["preset"] == "cpu-tiny"


def test_a_clone_is_filled_in_like_the_job_and_launched_with_the_keyboard(
    form: Page,
    dashboard,  # type: ignore[no-untyped-def]
    queue: Callable[..., Any],
    call_api: Callable[..., Any],
) -> None:
    original = queue(
        "original",
        params={"group_size": 4},
        overrides={"trainer.balance_batch": False},
        tags=["first"],
        seed=9,
    )

    form.goto(f"{dashboard.url}/jobs/new?clone={original['id']}")
    expect(form.get_by_label("Name")).to_have_value("original (copy)")
    expect(form.get_by_text("Ready to launch")).to_be_visible()
    form.locator('[data-field="params.group_size"] input').fill("16")
    expect(form.get_by_text("Ready to launch")).to_be_visible()
    form.keyboard.press("Control+Enter")

    form.wait_for_url(re.compile("/jobs/job_"))
    copy = call_api("GET", f"/jobs/{form.url.rsplit('/', 1)[1]}")
    assert copy["params"] == {"group_size": 16}
    assert copy["overrides"] == {"trainer.balance_batch": False}
    assert (copy["tags"], copy["seed"]) == (["first"], 9)


def test_a_failed_job_is_fixed_and_launched_again(
    form: Page, dashboard: Any, launch: Callable[..., Any], call_api: Callable[..., Any]
) -> None:
    failed = launch("too large", params={"group_size": 4})
    failed.settle("failed", reason="The GPU ran out of memory.", cause="out_of_memory")
    form.goto(f"{dashboard.url}/jobs/{failed.id}")
    (change, *_) = call_api("GET", f"/jobs/{failed.id}")["failure"]["changes"]
    form.locator("[data-test=fix]").get_by_role("button", name="Fix and retry").click()

    expect(form).to_have_url(re.compile(f"clone={failed.id}.*fix=1"))
    expect(form.locator("[data-test=changes]")).to_contain_text(change["parameter"])
    expect(form.get_by_text("Ready to launch")).to_be_visible()
    form.get_by_role("button", name="Launch").click()

    form.wait_for_url(re.compile("/jobs/job_"))
    again = call_api("GET", f"/jobs/{form.url.rsplit('/', 1)[1]}")["params"]
    assert again["group_size"] == 4
    assert again[change["parameter"]] == change["suggested"]


def test_the_form_speaks_the_readers_language(form: Page) -> None:
    form.locator("h1").click()
    form.keyboard.press("l")

    expect(form.get_by_role("heading", level=1, name="新建任务")).to_be_visible()
    expect(form.locator('[data-field="params.group_size"] label')).to_have_text("组大小")
    expect(form.get_by_text("可以启动")).to_be_visible()
