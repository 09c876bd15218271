"""Logs, rollouts, checkpoints, configuration and manifest of a job."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser
TIME = "2026-01-01T00:00:00Z"


def lines(first: int, last: int) -> dict[str, Any]:
    """A log event with numbered lines."""
    return {
        "kind": "log",
        "time": TIME,
        "stream": "stdout",
        "lines": [f"line number {number}" for number in range(first, last + 1)],
    }


def test_a_hundred_thousand_lines_are_there_but_few_are_in_the_document(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    launch: Callable[..., Any],
) -> None:
    job = launch("talkative")
    for page_number in range(20):
        job.send(lines(page_number * 5000 + 1, (page_number + 1) * 5000))
    logged_in.goto(f"{dashboard.url}/jobs/{job.id}?tab=logs")

    expect(logged_in.get_by_text("100,000 of 100,000 lines")).to_be_visible(timeout=30_000)
    expect(logged_in.get_by_text("line number 100000", exact=True)).to_be_visible()
    assert logged_in.locator("[data-test=log] .line").count() < 200

    logged_in.get_by_placeholder("Search logs").fill("number 4242")
    expect(logged_in.get_by_text("0 of 11")).to_be_visible()
    logged_in.get_by_role("button", name="Next", exact=True).click()
    logged_in.get_by_role("button", name="Next", exact=True).click()
    expect(logged_in.locator(".line.current")).to_contain_text("line number 4242")


def test_the_log_follows_until_it_is_held(logged_in: Page, dashboard, launch) -> None:  # type: ignore[no-untyped-def]
    job = launch("to be followed")
    job.send(lines(1, 200))
    logged_in.goto(f"{dashboard.url}/jobs/{job.id}?tab=logs")
    expect(logged_in.get_by_text("line number 200", exact=True)).to_be_visible()

    job.send(lines(201, 220))
    expect(logged_in.get_by_text("line number 220", exact=True)).to_be_visible()

    logged_in.get_by_role("button", name="Pause").click()
    job.send(lines(221, 230))
    expect(logged_in.get_by_role("button", name="Resume (10 new)")).to_be_visible()
    expect(logged_in.get_by_text("line number 230", exact=True)).to_have_count(0)

    logged_in.get_by_role("button", name="Resume (10 new)").click()
    expect(logged_in.get_by_text("line number 230", exact=True)).to_be_visible()


def test_the_log_is_saved_whole(logged_in: Page, dashboard, launch, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    job = launch("to be saved")
    job.send(lines(1, 50))
    logged_in.goto(f"{dashboard.url}/jobs/{job.id}?tab=logs")
    expect(logged_in.get_by_text("line number 50", exact=True)).to_be_visible()

    with logged_in.expect_download() as waiting:
        logged_in.get_by_role("button", name="Download").click()
    waiting.value.save_as(tmp_path / "job.log")

    saved = (tmp_path / "job.log").read_text().splitlines()
    assert len(saved) == 50
    assert saved[0].endswith("stdout line number 1")


def rollout(group: str, score: float, response: str, **more: Any) -> dict[str, Any]:
    """One response."""
    return {
        "group": group,
        "prompt": f"Question {group}?",
        "response": response,
        "ground_truth": "42",
        "score": score,
        "reward_parts": {"accuracy": score},
        "response_tokens": 3,
        "advantage": score - 0.5,
        **more,
    }


def test_rollouts_stand_together_by_prompt_with_their_scores(logged_in: Page, dashboard, launch) -> None:  # type: ignore[no-untyped-def]
    job = launch("with samples")
    samples = [
        rollout("one", 0, "<b>41</b>"),
        rollout("one", 1, "42"),
        rollout("two", 1, "x" * 2000, is_truncated=True),
    ]
    for step in (10, 20):
        job.send({"kind": "rollouts", "time": TIME, "step": step, "split": "train", "rollouts": samples})
    logged_in.goto(f"{dashboard.url}/jobs/{job.id}?tab=rollouts")

    expect(logged_in.locator("[data-test=rollout-step]")).to_have_text("Step 20")
    first = logged_in.locator("section.group").first
    expect(first).to_contain_text("Question one?")
    expect(first.locator(".score")).to_have_text(["1", "0"])
    expect(first).to_contain_text("<b>41</b>")
    expect(first).to_contain_text("2 responses, mean 0.5")
    second = logged_in.locator("section.group").nth(1)
    expect(second).to_contain_text("truncated")
    second.get_by_role("button", name="Show all 2,000 characters").click()
    expect(second.locator("pre").last).to_have_text("x" * 2000)

    logged_in.get_by_role("slider").press("ArrowLeft")
    expect(logged_in.locator("[data-test=rollout-step]")).to_have_text("Step 10")


def test_the_manifest_can_be_saved_and_the_configuration_searched(
    logged_in: Page,
    dashboard,  # type: ignore[no-untyped-def]
    launch: Callable[..., Any],
    tmp_path: Path,
) -> None:
    job = launch("written down")
    logged_in.goto(f"{dashboard.url}/jobs/{job.id}?tab=manifest")
    expect(logged_in.get_by_text("No manifest yet")).to_be_visible()
    manifest = {
        "config": {"actor": {"optim": {"lr": 0.001, "name": "adamw"}}, "trainer": {"seed": 1}},
        "engine_overrides": ["actor.optim.lr=0.001"],
        "command": "python -m verl.trainer.main_ppo actor.optim.lr=0.001",
        "packages": {"verl": "0.9.1"},
    }
    job.send({"kind": "manifest", "time": TIME, "manifest": manifest})

    expect(logged_in.get_by_text("python -m verl.trainer.main_ppo actor.optim.lr=0.001")).to_be_visible()
    with logged_in.expect_download() as waiting:
        logged_in.get_by_role("button", name="Download JSON").click()
    waiting.value.save_as(tmp_path / "manifest.json")
    assert json.loads((tmp_path / "manifest.json").read_text()) == manifest

    logged_in.get_by_role("tab", name="Configuration").click()
    engine = logged_in.locator("section", has_text="Engine configuration")
    expect(engine.get_by_text("0.001")).to_be_visible()
    expect(engine.get_by_text("adamw")).to_have_count(0)
    engine.get_by_text("Only values set by this job").click()
    engine.get_by_placeholder("Search keys and values").fill("adamw")
    expect(engine.get_by_text("adamw")).to_be_visible()
