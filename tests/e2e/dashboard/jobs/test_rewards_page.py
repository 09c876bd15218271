"""Rewards: the catalogue, a person's own function, and a dry run that a worker carries out."""

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, quote, urlsplit

import pytest
from playwright.sync_api import Page, expect
from trellis_api.core.settings import Settings
from trellis_testing.pages import choose_from_select
from trellis_workers.rewards import dry_runs

pytestmark = pytest.mark.browser


def test_a_dry_run_shows_what_the_rewards_do_and_leads_to_the_form(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    model: dict[str, Any],
    dataset: dict[str, Any],
    database: Any,
    tidy: None,
) -> None:
    page = logged_in
    page.goto(f"{dashboard.url}/rewards")
    page.locator('[data-kind="gsm8k"]').get_by_role("button", name="Try", exact=True).click()
    expect(page.locator("[data-term=gsm8k]")).to_be_visible()
    choose_from_select(page, page.locator("[data-test=add-term]"), "Length penalty")
    page.locator("[data-term=length]").get_by_label("Weight").fill("0.5")
    expect(page.get_by_text("Total reward: −0.5 to 1.")).to_be_visible()
    choose_from_select(page, page.locator("[data-test=dry-run-dataset]"), "addition")
    page.get_by_label("Number of rows").fill("16")
    page.get_by_role("button", name="Start dry run").click()
    expect(page.get_by_role("heading", name="Queued")).to_be_visible()

    dry_runs.run_waiting(Settings(data_root=dashboard.data_root), database)

    result = page.locator("[data-test=dry-run-result]")
    expect(result.locator('[data-probe="gold"] .mean')).to_have_text("1")
    expect(result.locator('[data-probe="empty"] .mean')).to_have_text("0")
    expect(result.locator('[data-probe-details="gold"] [role="img"]')).to_be_visible()
    expect(result.get_by_text("Deterministic")).to_be_visible()
    expect(result).to_contain_text("p95")

    page.reload()
    expect(result.locator('[data-probe="gold"] .mean')).to_have_text("1")
    page.get_by_role("button", name="Use in a job").click()
    page.wait_for_url(re.compile("/jobs/new"))
    mixture = page.locator('[data-field="params.rewards"]')
    expect(mixture.locator("[data-term]")).to_have_count(2)
    expect(page.get_by_text("Ready to launch")).to_be_visible()


def test_the_launch_form_leads_to_a_dry_run_of_what_it_would_train_on(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    model: dict[str, Any],
    dataset: dict[str, Any],
    tidy: None,
) -> None:
    page = logged_in
    columns = quote(json.dumps({"prompt": "answer", "answer": "question"}))
    page.goto(f"{dashboard.url}/jobs/new?dataset={dataset['id']}&version=main&split=train&columns={columns}")
    expect(page.locator("[data-test=data-fit]")).to_contain_text("prompt ← answer")
    choose_from_select(page, page.locator('[data-field="params.reward"] .n-select'), "math")
    page.get_by_role("switch", name="All settings").click()
    page.locator('[data-field="params.format_weight"] input').fill("0.9")
    link = page.locator("[data-test=dry-run-link]")
    expect(link).to_have_attribute("href", re.compile("math.*format"))

    link.click()

    expect(page.locator("[data-term=math]").get_by_label("Weight")).to_have_value("0.1")
    expect(page.locator("[data-term=format]").get_by_label("Weight")).to_have_value("0.9")
    expect(page.locator("[data-test=dry-run-dataset]")).to_contain_text("addition")
    expect(page.locator('[data-field="columns.prompt"]')).to_contain_text("answer")
    expect(page).to_have_url(re.compile("version=main&split=train"))


def test_a_dry_run_names_the_missing_column_and_takes_the_one_that_is_offered(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    odd_sums: dict[str, Any],
    call_api: Callable[..., Any],
) -> None:
    page = logged_in
    terms = quote(json.dumps([{"name": "gsm8k", "weight": 1, "options": {}}]))
    page.goto(f"{dashboard.url}/rewards?tab=dry-run&dataset={odd_sums['id']}&rewards={terms}")
    page.get_by_role("button", name="Start dry run").click()
    remedies = page.locator("[data-test=remedies]")
    expect(remedies.locator('[data-role="answer"]')).to_contain_text("No column is the answer")
    page.locator("h1").click()
    page.keyboard.press("l")
    expect(remedies.locator('[data-role="answer"]')).to_contain_text("没有列作为 answer")

    remedies.locator("[data-test=offer]", has_text="prompt: question, answer: reply").click()

    expect(remedies).to_have_count(0)
    expect(page.locator('[data-field="columns.answer"]')).to_contain_text("reply")
    page.locator("[data-test=start-dry-run]").click()
    expect(page.get_by_role("heading", name="等待工作进程")).to_be_visible()
    page.wait_for_url(re.compile("run=dry_"))
    (run,) = parse_qs(urlsplit(page.url).query)["run"]
    call_api("DELETE", f"/rewards/dry-runs/{run}")


def test_terms_are_ordered_and_removed_and_a_mistake_is_told_at_its_option(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    model: dict[str, Any],
    dataset: dict[str, Any],
    tidy: None,
) -> None:
    page = logged_in
    terms = [
        {"name": "exact", "weight": 1, "options": {}},
        {"name": "regex", "weight": 1, "options": {"pattern": "(("}},
    ]
    chosen = f"model={model['id']}&dataset={dataset['id']}"
    page.goto(f"{dashboard.url}/jobs/new?{chosen}&rewards={quote(json.dumps(terms))}")
    mixture = page.locator('[data-field="params.rewards"]')
    option = mixture.locator('[data-field="params.rewards.1.options.pattern"]')
    expect(option).to_contain_text("Invalid pattern")

    mixture.get_by_role("button", name="Move Regular expression up").click()
    expect(mixture.locator("[data-term]").first).to_have_attribute("data-term", "regex")
    mixture.get_by_role("button", name="Remove Regular expression").click()
    expect(mixture.locator("[data-term]")).to_have_count(1)
    expect(page.get_by_text("Ready to launch")).to_be_visible()


def test_an_own_function_is_added_read_and_deleted(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    call_api: Callable[..., Any],
) -> None:
    page = logged_in
    page.goto(f"{dashboard.url}/rewards?tab=files")
    expect(page.get_by_text("No custom functions yet")).to_be_visible()
    page.get_by_role("button", name="Add function").first.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name").fill("short answers")
    dialog.get_by_label("Python").fill("def score(prompt, response, answer, row):\n    return 1 /")
    dialog.get_by_role("button", name="Add", exact=True).click()
    expect(dialog.get_by_role("alert").first).to_be_visible()

    dialog.get_by_label("Python").fill("def score(prompt, response, answer, row):\n    return 1.0")
    dialog.get_by_role("button", name="Add", exact=True).click()
    page.get_by_role("button", name="short answers", exact=True).click()
    expect(page.get_by_role("dialog").locator("pre")).to_contain_text("return 1.0")
    page.keyboard.press("Escape")

    page.get_by_role("button", name="Delete short answers").click()
    page.get_by_role("dialog").get_by_role("button", name="Delete").click()
    expect(page.get_by_text("No custom functions yet")).to_be_visible()
    assert call_api("GET", "/rewards/files")["items"] == []
