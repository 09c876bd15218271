"""The launch form: which recipe, and how the data fits it."""

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from trellis_cli.client import ApiClient
from trellis_cli.waiting import wait_for_dataset
from trellis_testing.pages import choose_from_select

pytestmark = pytest.mark.browser


@pytest.fixture
def odd_pairs(api: ApiClient, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Pairs of answers under column names that nobody expects."""
    rows = [
        {"instruction": f"What is {n} + 1?", "good_one": str(n + 1), "bad_one": "no idea"} for n in range(200)
    ]
    path = tmp_path / "odd.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    made = wait_for_dataset(api, api.upload("/datasets", path, {"name": "odd pairs"})["id"])
    yield made
    api.delete(f"/datasets/{made['id']}")


@pytest.fixture
def chats(api: ApiClient, tmp_path: Path) -> Iterator[dict[str, Any]]:
    """Conversations without an answer that could be checked."""
    rows = [
        {
            "messages": [
                {"role": "user", "content": f"Tell me about {n}."},
                {"role": "assistant", "content": f"It is the number after {n - 1}."},
            ]
        }
        for n in range(200)
    ]
    path = tmp_path / "chats.jsonl"
    path.write_text("\n".join(json.dumps(row) for row in rows))
    made = wait_for_dataset(api, api.upload("/datasets", path, {"name": "chats"})["id"])
    yield made
    api.delete(f"/datasets/{made['id']}")


def test_the_recipe_follows_the_data_until_one_is_chosen_and_is_offered_then(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    model: dict[str, Any],
    dataset: dict[str, Any],
    chats: dict[str, Any],
) -> None:
    page = logged_in
    page.goto(f"{dashboard.url}/jobs/new")
    recipe, fit = page.locator('[data-field="recipe"]'), page.locator("[data-test=data-fit]")
    expect(recipe).to_have_attribute("data-recipe", "grpo")

    choose_from_select(page, page.locator("[data-test=dataset]"), "chats")
    expect(recipe).to_have_attribute("data-recipe", "sft")
    expect(recipe).to_contain_text("Suits your data")
    expect(fit).to_have_attribute("data-verdict", "fits")

    page.get_by_role("button", name="Change recipe").click()
    dialog = page.locator("[data-test=recipe-dialog]")
    expect(dialog.get_by_role("heading", level=3).first).to_have_text("Suits your data")
    expect(dialog.locator("[data-test=suited] [data-recipe]")).to_have_count(1)
    dialog.locator('[data-recipe="grpo"]').get_by_role("button").click()
    expect(recipe.locator('[data-code="answers_not_checkable"]')).to_be_visible()
    expect(recipe.get_by_role("button", name="Use sft")).to_be_visible()

    fit.get_by_role("button", name="Use SFT").click()
    expect(recipe).to_have_attribute("data-recipe", "sft")
    expect(recipe.locator('[data-code="answers_not_checkable"]')).to_have_count(0)


def test_a_recipe_is_found_by_family_and_search_and_launched(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    model: dict[str, Any],
    dataset: dict[str, Any],
    tidy: None,
    call_api: Callable[..., Any],
) -> None:
    page = logged_in
    page.goto(f"{dashboard.url}/jobs/new")
    expect(page.get_by_text("Ready to launch")).to_be_visible()
    page.locator('[data-field="params.learning_rate"] input').fill("0.0003")

    page.get_by_role("button", name="Change recipe").click()
    dialog = page.locator("[data-test=recipe-dialog]")
    for family in ("Supervised", "Reinforcement learning", "Preference"):
        expect(dialog.get_by_role("heading", level=3, name=family)).to_be_visible()
    dialog.get_by_label("Search recipes").fill("rloo")
    expect(dialog.locator('[data-recipe="grpo"]')).to_have_count(0)
    dialog.locator('[data-recipe="rloo"]').get_by_role("button").press("Enter")

    expect(page.locator('[data-recipe="rloo"] h2')).to_contain_text("RLOO")
    expect(page.locator('[data-field="params.learning_rate"] input')).to_have_value("0.0003")
    expect(page.get_by_text("Ready to launch")).to_be_visible()
    page.get_by_role("button", name="Launch").click()

    page.wait_for_url(re.compile("/jobs/job_"))
    job = call_api("GET", f"/jobs/{page.url.rsplit('/', 1)[1]}")
    assert job["recipe"] == "rloo"
    assert job["params"] == {"learning_rate": 0.0003}


def test_a_reading_that_is_offered_makes_the_dataset_fit(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    model: dict[str, Any],
    odd_pairs: dict[str, Any],
    tidy: None,
    call_api: Callable[..., Any],
) -> None:
    page = logged_in
    page.goto(f"{dashboard.url}/jobs/new?recipe=dpo&dataset={odd_pairs['id']}&model={model['id']}")
    fit = page.locator("[data-test=data-fit]")
    expect(fit).to_have_attribute("data-verdict", "misfit")
    expect(fit.locator('[data-role="chosen"]')).to_be_visible()

    fit.locator("[data-test=offer]", has_text="chosen: good_one").click()

    expect(fit).not_to_have_attribute("data-verdict", "misfit")
    expect(fit.locator("dt", has_text=re.compile("^chosen$"))).to_be_visible()
    expect(page.get_by_text("Ready to launch")).to_be_visible()
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url(re.compile("/jobs/job_"))
    job = call_api("GET", f"/jobs/{page.url.rsplit('/', 1)[1]}")
    assert job["data_format"] == "preference"
    assert job["columns"] == {"prompt": "instruction", "chosen": "good_one", "rejected": "bad_one"}


def test_a_validation_dataset_that_does_not_fit_is_offered_a_reading_of_its_own(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    model: dict[str, Any],
    dataset: dict[str, Any],
    odd_sums: dict[str, Any],
    tidy: None,
    call_api: Callable[..., Any],
) -> None:
    page = logged_in
    page.goto(f"{dashboard.url}/jobs/new?dataset={dataset['id']}&model={model['id']}")
    expect(page.get_by_text("Ready to launch")).to_be_visible()
    expect(page.locator("[data-test=validation-fit]")).to_have_count(0)

    choose_from_select(page, page.locator("[data-test=validation-dataset]"), "odd sums")

    fit = page.locator("[data-test=validation-fit]")
    expect(fit).to_have_attribute("data-verdict", "misfit")
    expect(fit.locator('[data-role="answer"]')).to_contain_text("No column is the answer")
    fit.locator("[data-test=offer]", has_text="prompt: question, answer: reply").click()
    expect(fit).to_have_attribute("data-verdict", "converts")
    expect(page.locator("[data-test=data-fit]")).to_contain_text("prompt ← question")
    expect(page.get_by_text("Ready to launch")).to_be_visible()
    page.get_by_role("button", name="Launch").click()
    page.wait_for_url(re.compile("/jobs/job_"))
    job = call_api("GET", f"/jobs/{page.url.rsplit('/', 1)[1]}")
    assert (job["columns"], job["validation_columns"]) == ({}, {"prompt": "question", "answer": "reply"})


def test_a_dataset_of_another_format_stands_below_with_the_reason(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    model: dict[str, Any],
    dataset: dict[str, Any],
    odd_pairs: dict[str, Any],
) -> None:
    page = logged_in
    page.goto(f"{dashboard.url}/jobs/new")
    expect(page.locator("[data-test=dataset]")).to_contain_text("addition")

    page.locator("[data-test=dataset]").click()

    options = page.locator(".n-base-select-menu")
    expect(options.get_by_text("Other formats: you may need to map columns")).to_be_visible()
    expect(options.locator(".n-base-select-option").last).to_contain_text("odd pairs")
