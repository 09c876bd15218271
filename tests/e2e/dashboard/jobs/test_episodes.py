"""An agent's episodes on the page of its job: turn by turn, by keyboard, by link."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect
from trellis_testing.agent_work import TIME, answered_episode, episode, failed_episode, lost_episode

pytestmark = pytest.mark.browser


@pytest.fixture
def reported(launch: Callable[..., Any]) -> Any:
    """A job with three episodes of one step."""
    job = launch("agent")
    parts = {"outcome": 1.5, "process": 0.3, "penalty": -0.15, "turns": 4}
    rollouts = [
        episode("one", 2.1, answered_episode(), **parts),
        episode("one", -0.6, lost_episode(), outcome=-0.6),
        episode("two", -1.5, lost_episode("new_reason"), outcome=-1.5),
    ]
    job.send({"kind": "rollouts", "time": TIME, "step": 5, "split": "train", "rollouts": rollouts})
    values = {"train/accuracy": 0.4, "eval/accuracy": 0.5, "baseline/accuracy": 0.1, "agent/turns/mean": 4.0}
    job.send({"kind": "metrics", "time": TIME, "step": 5, "values": values})
    return job


def test_an_episode_is_read_turn_by_turn(logged_in: Page, dashboard, reported) -> None:  # type: ignore[no-untyped-def]
    logged_in.goto(f"{dashboard.url}/jobs/{reported.id}?tab=rollouts")
    shown = logged_in.locator("[data-test=episode]")
    expect(shown.locator("[data-test=stop-reason]")).to_contain_text("Answered")

    turns = shown.locator("[data-turn]")
    expect(turns).to_have_count(10)
    trained = [turns.nth(number).get_attribute("data-trained") for number in range(10)]
    assert [number for number, is_trained in enumerate(trained) if is_trained == "true"] == [2, 4, 6, 9]
    refused = turns.nth(2).locator("[data-test=call]")
    expect(refused).to_contain_text("DENIED access denied")
    search = turns.nth(4).locator("[data-test=call]")
    expect(search).to_contain_text("4.2 ms")
    expect(search.locator(".sql pre")).to_have_text(re.compile(r"\nFROM profiles\nWHERE skills LIKE"))
    expect(search.locator("[data-test=result-table] tbody tr")).to_have_count(2)
    # What the call was answered with is not said twice; what the loop said of its own is there.
    expect(turns.nth(5).get_by_text("Raw model input")).to_be_visible()
    expect(turns.nth(5).locator("table")).to_be_hidden()
    expect(turns.nth(8)).to_contain_text("This is your last turn")
    expect(shown.locator("[data-part=penalty] .bar.less")).to_be_visible()
    expect(shown.locator("[data-part=turns] .bar")).to_have_count(0)

    logged_in.keyboard.press("j")
    logged_in.keyboard.press("j")
    expect(turns.nth(1)).to_have_attribute("aria-current", "step")
    logged_in.keyboard.press("k")
    expect(turns.nth(0)).to_have_attribute("aria-current", "step")

    logged_in.keyboard.press("]")
    expect(shown.locator("[data-test=stop-reason]")).to_contain_text("Turn limit")
    expect(shown.get_by_text("too long to store in full")).to_be_visible()
    logged_in.keyboard.press("]")
    expect(shown.locator("[data-test=stop-reason]")).to_contain_text("new_reason")
    logged_in.reload()
    expect(logged_in.locator("[data-test=stop-reason]")).to_contain_text("new_reason")


def test_a_session_that_failed_shows_its_error_with_file_and_line(
    logged_in: Page, dashboard: Any, launch: Callable[..., Any]
) -> None:
    job = launch("failed")
    error = (
        'Traceback (most recent call last):\n  File "workflow.py", line 28, in workflow\n'
        "    message = reply.choices[0].mesage\nAttributeError: the reply has no field 'mesage' here"
    )
    rollouts = [episode("one", 0.0, failed_episode(error)), episode("two", 2.1, answered_episode())]
    # As a run that fails before its first step reports them: of the validation, and of no step yet.
    job.send({"kind": "rollouts", "time": TIME, "step": 0, "split": "validation", "rollouts": rollouts})

    logged_in.goto(f"{dashboard.url}/jobs/{job.id}?tab=rollouts")

    shown = logged_in.locator("[data-test=episode]")
    expect(shown.locator("[data-test=stop-reason]")).to_contain_text("Workflow failed: AttributeError")
    expect(shown.locator("[data-test=episode-error]")).to_contain_text('File "workflow.py", line 28')
    expect(shown.locator("[data-test=episode-error]")).to_contain_text("has no field 'mesage'")
    logged_in.keyboard.press("]")
    expect(shown.locator("[data-test=stop-reason]")).to_contain_text("Answered")
    expect(shown.locator("[data-test=episode-error]")).to_have_count(0)


def test_a_step_with_many_episodes_is_read_page_by_page(logged_in: Page, dashboard, launch) -> None:  # type: ignore[no-untyped-def]
    job = launch("many")
    rollouts = [episode(f"prompt {number}", number / 60, answered_episode()) for number in range(60)]
    job.send({"kind": "rollouts", "time": TIME, "step": 5, "split": "train", "rollouts": rollouts})
    logged_in.goto(f"{dashboard.url}/jobs/{job.id}?tab=rollouts")
    listed = logged_in.locator("[data-episode]")
    expect(listed).to_have_count(50)
    expect(logged_in.get_by_text("60 of 60 episodes")).to_be_visible()
    expect(logged_in.get_by_role("heading", name="Scores of 60 responses")).to_be_visible()

    shown = logged_in.locator("[data-test=episode]")
    listed.last.click()
    expect(shown.get_by_role("heading", level=3)).to_have_text("Episode 50")
    logged_in.keyboard.press("]")
    expect(listed).to_have_count(60)
    expect(shown.get_by_role("heading", level=3)).to_have_text("Episode 51")
    # The link leads to it although the first page does not hold it.
    logged_in.reload()
    expect(shown.get_by_role("heading", level=3)).to_have_text("Episode 51")
    expect(listed).to_have_count(50)

    logged_in.get_by_placeholder("Min score").fill("0.95")
    logged_in.keyboard.press("Tab")
    expect(logged_in.get_by_text("3 of 60 episodes")).to_be_visible()
    logged_in.get_by_text("By prompt", exact=True).click()
    prompts = logged_in.locator(".group .prompt")
    expect(prompts).to_have_count(50)
    logged_in.get_by_role("button", name="Load more").click()
    expect(prompts).to_have_count(60)


def test_episodes_are_filtered_and_agents_have_charts_of_their_own(
    logged_in: Page, dashboard, reported
) -> None:  # type: ignore[no-untyped-def]
    logged_in.goto(f"{dashboard.url}/jobs/{reported.id}?tab=rollouts")
    expect(logged_in.get_by_text("3 of 3 episodes")).to_be_visible()
    logged_in.get_by_placeholder("Min score").fill("0")
    logged_in.keyboard.press("Tab")
    expect(logged_in.get_by_text("1 of 3 episodes")).to_be_visible()

    logged_in.get_by_role("tab", name="Charts").click()
    agent = logged_in.locator("section[data-part=agent]")
    expect(agent.get_by_role("heading", level=3)).to_have_text(["Accuracy", "Turns (mean)"])
    expect(agent).to_contain_text("Share of correct answers; for episodes, the share with a score above 0.5.")
    expect(agent.get_by_role("button", name="before training")).to_be_visible()
