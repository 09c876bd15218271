"""Reading the responses of a run: the map of prompts and steps, one prompt, one response, the filter."""

import re
from typing import Any

import pytest
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser
TIME = "2026-01-01T00:00:00Z"


def response(step: int, prompt: int, score: float, text: str, **more: Any) -> dict[str, Any]:
    """One response of a group that is named as trainers do."""
    return {
        "group": f"{step:07}-{prompt:07}",
        "prompt": f"user\nWhat is {prompt} + {prompt}?\nassistant\n",
        "messages": [{"role": "user", "content": f"What is **{prompt} + {prompt}**?"}],
        "response": text,
        "ground_truth": str(2 * prompt),
        "score": score,
        "reward_parts": {"acc": float(score >= 1), "format": 1.0},
        "response_tokens": len(text),
        "advantage": score - 0.5,
        **more,
    }


def sample(step: int) -> dict[str, Any]:
    """Prompt 1 is always right, prompt 2 always wrong, prompt 3 is learned from step 3 on."""
    wrong = "<think>I add them up.</think>\n\nIt is **7**."
    members = [response(step, 1, 1.0, "2") for _ in range(3)] + [response(step, 1, 1.0, "It is 2.")]
    members += [response(step, 2, 0.1, wrong) for _ in range(4)]
    members += [response(step, 3, float(step > 2 + place), f"6 or {place}") for place in range(4)]
    return {"kind": "rollouts", "time": TIME, "step": step, "split": "train", "rollouts": members}


def test_a_prompt_is_followed_from_the_map_to_one_response(logged_in: Page, dashboard, launch) -> None:  # type: ignore[no-untyped-def]
    job = launch("to be read")
    for step in range(1, 9):
        job.send(sample(step))
    logged_in.goto(f"{dashboard.url}/jobs/{job.id}?tab=rollouts")
    shares = logged_in.locator("[data-test=group-shares]")
    expect(shares).to_contain_text("3 of 3 prompts without spread (100%) · 2 all right, 1 all wrong")
    expect(logged_in.locator("section.group").first).to_contain_text("3 ×")

    logged_in.get_by_text("All steps", exact=True).click()
    cells = logged_in.locator("[data-test=prompt-map] button.cell")
    expect(cells).to_have_count(24)
    expect(shares).to_contain_text("21 of 24 prompts without spread")
    cells.first.focus()
    logged_in.keyboard.press("ArrowDown")
    logged_in.keyboard.press("ArrowRight")
    logged_in.keyboard.press("ArrowRight")
    logged_in.keyboard.press("Enter")

    history = logged_in.locator("[data-test=prompt-history]")
    expect(history.locator("h3.step")).to_have_text(["Step 3", "Step 2", "Step 1"])
    logged_in.keyboard.press("j")
    logged_in.keyboard.press("Enter")
    reader = logged_in.locator("[data-test=reader]")
    expect(reader).to_contain_text("6 or 0")
    expect(logged_in.get_by_text("1 of 4 to this prompt")).to_be_visible()
    logged_in.keyboard.press("j")
    expect(reader).to_contain_text("6 or 1")
    logged_in.keyboard.press("Escape")
    expect(history).to_be_visible()
    logged_in.get_by_role("button", name=re.compile("Show the newest")).click()
    expect(history.locator("h3.step")).to_have_count(8)


def test_responses_are_filtered_and_read_as_chat(logged_in: Page, dashboard, launch) -> None:  # type: ignore[no-untyped-def]
    job = launch("to be filtered")
    job.send(sample(4))
    logged_in.goto(f"{dashboard.url}/jobs/{job.id}?tab=rollouts")

    logged_in.get_by_placeholder("Search prompts and responses").fill("IT IS")
    expect(logged_in.get_by_text("5 of 12 responses")).to_be_visible()
    expect(logged_in.locator("section.group").first).to_contain_text("1 match")
    logged_in.get_by_placeholder("Max score").fill("0.5")
    logged_in.keyboard.press("Enter")
    expect(logged_in.get_by_text("4 of 12 responses")).to_be_visible()
    logged_in.get_by_text("Chat", exact=True).click()
    group = logged_in.locator("section.group")
    expect(group.locator("strong").first).to_have_text("2 + 2")
    expect(group.locator("summary")).to_have_text("Thinking (14 characters)")
    logged_in.get_by_role("button", name="Clear filter").click()
    expect(logged_in.locator("section.group")).to_have_count(3)


def traced(step: int) -> dict[str, Any]:
    """A step with the tokens of one response."""
    texts = ["It", " is", " 6", "."]
    trace = {
        "first": 0,
        "texts": texts,
        "log_prob": [-0.1, -0.2, -3.0, -0.01],
        "entropy": [0.1, 0.3, 1.5, None],
        "advantage": [0.5] * 4,
        "kl": None,
        "difference": [0.0, 0.001, -0.9, 0.0],
        "not_finite": [3],
    }
    one = response(step, 3, 1.0, "".join(texts), response_tokens=4, tokens=trace)
    return {"kind": "rollouts", "time": TIME, "step": step, "split": "train", "rollouts": [one]}


def test_a_spike_in_a_curve_leads_to_the_tokens_behind_it(logged_in: Page, dashboard, launch) -> None:  # type: ignore[no-untyped-def]
    job = launch("with a spike")
    for step in range(1, 10):
        spike = 0.9 if step == 5 else 0.01
        job.send(
            traced(step) if step in (1, 5) else sample(step),
            {
                "kind": "metrics",
                "time": TIME,
                "step": step,
                "values": {"training/rollout_probs_diff_mean": spike},
            },
        )
    logged_in.goto(f"{dashboard.url}/jobs/{job.id}")
    chart = logged_in.locator("[data-metric='training/rollout_probs_diff_mean'] canvas").first
    expect(chart).to_be_visible()
    chart.click()  # in the middle, once the page around it has settled
    link = logged_in.locator("[data-test=behind]")
    expect(link).to_have_text("Tokens behind step 5")
    link.click()

    tokens = logged_in.locator("[data-test=tokens]")
    expect(tokens).to_have_text("It is 6.")
    expect(logged_in.get_by_role("radio", name="Trainer − rollout")).to_be_checked()
    tokens.focus()
    for _ in range(3):
        logged_in.keyboard.press("ArrowRight")
    detail = logged_in.locator("[data-test=token-detail]")
    expect(detail).to_contain_text('Token 3 " 6"')
    expect(detail).to_contain_text("Trainer − rollout −0.9")
    logged_in.get_by_text("Log-probability", exact=True).click()
    expect(logged_in).to_have_url(re.compile("tokens=log_prob"))

    logged_in.get_by_role("slider").press("ArrowRight")
    expect(logged_in.get_by_text("These are of step 5, the nearest one.")).to_be_visible()
