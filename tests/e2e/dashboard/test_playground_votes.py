"""Models are compared, also blindly; votes and conversations become rows, answers go on and are shared."""

import json
import re
import struct
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect
from trellis_testing.accessibility import check

pytestmark = pytest.mark.browser
ANSWERS = {"base": "3", "trained": "2"}


def _write_model(folder: Path) -> None:
    """The smallest folder that counts as a model to chat with."""
    folder.mkdir(parents=True)
    config = {"architectures": ["Qwen3ForCausalLM"], "model_type": "qwen3", "max_position_embeddings": 2048}
    (folder / "config.json").write_text(json.dumps(config))
    (folder / "tokenizer.json").write_text(json.dumps({"version": "1.0", "model": {"type": "BPE"}}))
    template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    (folder / "tokenizer_config.json").write_text(json.dumps({"chat_template": template}))
    header = json.dumps({"embed": {"dtype": "BF16", "shape": [4, 8], "data_offsets": [0, 64]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(64))


def _endpoint(name: str, model_id: str) -> dict[str, Any]:
    """A model that is loaded."""
    return {
        "id": f"ep_{name}",
        "name": name,
        "kind": "model",
        "model": {"id": model_id, "name": name},
        "state": "ready",
        "state_since": "2026-01-01T00:00:00Z",
        "phase": None,
        "stopped_by": None,
        "failure": None,
        "can_stop": True,
        "max_model_len": 2048,
        "idle_timeout_s": 600,
        "job": None,
        "step": None,
        "run_id": "job_aaaaaaaaaaaa",
        "attempt": 1,
        "shares_engine_of": None,
        "sharing_refusal": None,
        "stops_at": None,
        "last_used_at": None,
        "load": None,
        "preemptible": True,
        "preempted_by": None,
    }


@pytest.fixture
def page_with_engines(logged_in: Page, dashboard, call_api) -> Page:
    """Two models that answer: the engines are stand-ins, the votes are kept by the real API."""
    for name in ANSWERS:
        if not (dashboard.data_root / "models" / name).exists():
            _write_model(dashboard.data_root / "models" / name)
            call_api("POST", "/models", {"name": name, "source": {"kind": "local", "path": f"models/{name}"}})
    ids = {model["name"]: model["id"] for model in call_api("GET", "/models")["items"]}

    def answer(route: Route) -> None:
        text = ANSWERS[json.loads(route.request.post_data or "{}")["model"]]
        event = {"choices": [{"delta": {"content": text}, "finish_reason": "stop"}]}
        body = f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n"
        route.fulfill(status=200, content_type="text/event-stream", body=body)

    endpoints = {"items": [_endpoint(name, ids[name]) for name in ANSWERS], "next_cursor": None}
    logged_in.route("**/v1/chat/completions", answer)
    logged_in.route("**/api/v1/endpoints*", lambda route: route.fulfill(json=endpoints))
    return logged_in


def _ask(page: Page, prompt: str) -> None:
    page.get_by_label("Prompt for all columns").fill(prompt)
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("Which answer is better?")).to_be_visible()


def test_a_blind_vote_hides_the_models_until_it_is_given(
    page_with_engines: Page, dashboard, call_api
) -> None:
    page = page_with_engines
    page.goto(f"{dashboard.url}/playground?m=base&m=trained&blind=1")
    columns = page.locator("[data-test=column]")
    expect(columns).to_have_count(2)
    _ask(page, "1+1=")
    for name in ANSWERS:
        expect(page.get_by_text(name, exact=True)).to_have_count(0)

    better = "A" if "2" in (columns.nth(0).locator("[data-test=answer]").text_content() or "") else "B"
    page.get_by_role("button", name=f"{better} is better").click()

    expect(page.locator("[data-test=revealed]")).to_contain_text(f"{better} was trained.")
    expect(page.locator("[data-test=win-rates]")).to_contain_text("base vs trained")
    (vote,) = call_api("GET", "/votes")["items"]
    assert (vote["a"], vote["b"]) == ({"model": "base", "text": "3"}, {"model": "trained", "text": "2"})
    assert (vote["verdict"], vote["is_blind"], vote["messages"][-1]["content"]) == ("b", True, "1+1=")
    page.get_by_role("button", name="Next round").click()
    expect(page.locator("[data-test=letter]")).to_have_count(2)


def test_votes_become_a_dataset_of_pairs_whose_prompts_are_asked_again(
    page_with_engines: Page, dashboard, call_api
) -> None:
    page = page_with_engines
    page.goto(f"{dashboard.url}/playground?m=base&m=trained")
    _ask(page, "2+2=")
    page.get_by_role("button", name="trained is better").click()
    expect(page.get_by_text("Vote recorded: trained is better.")).to_be_visible()

    page.get_by_role("button", name="Make a dataset…").click()
    page.get_by_role("dialog").get_by_label("Name").fill("pairs of votes")
    page.get_by_role("dialog").get_by_role("button", name="Create").click()

    expect(page.get_by_role("heading", level=1, name="pairs of votes")).to_be_visible()
    (dataset,) = call_api("GET", "/datasets?text=pairs%20of%20votes")["items"]
    while dataset["state"] == "creating":
        page.wait_for_timeout(200)
        dataset = call_api("GET", f"/datasets/{dataset['id']}")
    assert (dataset["format"], dataset["row_count"]) == ("preference", 2)
    page.reload()
    page.get_by_role("button", name="Ask in the playground").first.click()
    expect(page.get_by_label("Prompt for all columns")).to_have_value("1+1=")


CALL = {"index": 0, "id": "call_1", "function": {"name": "weather", "arguments": '{"city": "Oslo"}'}}
TOOLS = json.dumps([{"type": "function", "function": {"name": "weather"}}])


def _answer_with_tools(route: Route) -> None:
    """A call first, and an answer once its result is there."""
    messages = json.loads(route.request.post_data or "{}")["messages"]
    answered = {"content": f"# Oslo\n\n- it is **{messages[-1]['content']}** cold"}
    delta = answered if messages[-1]["role"] == "tool" else {"tool_calls": [CALL]}
    event = {"choices": [{"delta": delta, "finish_reason": "stop"}]}
    body = f"data: {json.dumps(event)}\n\ndata: [DONE]\n\n"
    route.fulfill(status=200, content_type="text/event-stream", body=body)


def test_a_conversation_with_tools_is_corrected_and_becomes_a_row(
    page_with_engines: Page, dashboard, call_api
) -> None:
    page = page_with_engines
    page.route("**/v1/chat/completions", _answer_with_tools)
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{dashboard.url}/playground?m=base&tools={TOOLS}")
    page.get_by_label("Prompt for all columns").fill("Weather in Oslo?")
    page.get_by_label("Prompt for all columns").press("Control+Enter")

    page.get_by_label("Result of weather", exact=True).fill("-4")
    expect(page.get_by_role("button", name="Send", exact=True)).to_be_disabled()
    page.get_by_label("Result of weather", exact=True).press("Control+Enter")
    expect(page.get_by_role("heading", name="Oslo", exact=True)).to_be_visible()
    assert check(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_role("button", name="Edit answer").last.click()
    page.get_by_label("Answer", exact=True).fill("Very cold.")
    page.get_by_label("Answer", exact=True).press("Control+Enter")
    expect(page.get_by_text("Edited.")).to_be_visible()
    page.get_by_role("button", name="Save as row…").last.click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Name", exact=True).fill("typed in the playground")
    assert check(page) == []
    dialog.get_by_role("button", name="Save", exact=True).click()

    expect(page.get_by_text("Saved to typed in the playground.")).to_be_visible()
    (dataset,) = call_api("GET", "/datasets?text=typed%20in%20the%20playground")["items"]
    while dataset["state"] == "creating":
        page.wait_for_timeout(200)
        dataset = call_api("GET", f"/datasets/{dataset['id']}")
    (row,) = call_api("GET", f"/datasets/{dataset['id']}/rows")["rows"]
    assert dataset["format"] == "messages"
    said = [(each["role"], each["content"]) for each in row["messages"]]
    assert said[2:] == [("tool", "-4"), ("assistant", "Very cold.")]
    assert json.loads(row["tools"]) == json.loads(TOOLS)


WORDS = ("Oslo", " is", " a", " city", ".")
PIECES = [
    {"text": "<|im_start|>", "is_special": True},
    {"text": "user\nOslo?", "is_special": False},
    {"text": "<|im_end|>", "is_special": True},
    {"text": "\n", "is_special": False},
    {"text": "<|im_start|>", "is_special": True},
    {"text": "assistant\n", "is_special": False},
]


def _answer_with_tokens(asked: list[dict[str, Any]], route: Route) -> None:
    """Words with alternatives; an answer that was begun ends as a capital."""
    body = json.loads(route.request.post_data or "{}")
    asked.append(body)
    words = (" capital", ".") if body.get("continue_final_message") else WORDS
    events = []
    for word in words:
        top = [{"token": word, "logprob": -0.4}, {"token": " the", "logprob": -1.2}]
        told = {"content": [{"token": word, "logprob": -0.4, "top_logprobs": top}]}
        events.append({"choices": [{"delta": {"content": word}, "logprobs": told, "finish_reason": None}]})
    lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
    route.fulfill(status=200, content_type="text/event-stream", body=f"{lines}data: [DONE]\n\n")


def test_an_answer_goes_on_from_a_token_and_its_conversation_is_shared(
    page_with_engines: Page, dashboard
) -> None:
    page = page_with_engines
    asked: list[dict[str, Any]] = []
    page.route("**/v1/chat/completions", lambda route: _answer_with_tokens(asked, route))
    rendered = {"count": 12, "max_model_len": 2048, "tokens": [1], "pieces": PIECES}
    page.route("**/v1/tokenize", lambda route: route.fulfill(json=rendered))
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{dashboard.url}/playground?m=base")
    page.get_by_label("Prompt for all columns").fill("Oslo?")
    page.get_by_role("button", name="Send").click()

    page.get_by_role("button", name="Continue from a token…").click()
    page.locator(".token").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.get_by_role("dialog")).to_be_visible()
    assert check(page) == []
    page.keyboard.press("Enter")  # the focus is on the alternative

    expect(page.locator("[data-test=answer]")).to_have_text("Oslo is the capital.")
    assert asked[1]["messages"][-1] == {"role": "assistant", "content": "Oslo is the"}
    page.get_by_role("button", name="View prompt").click()
    expect(page.locator("[data-test=special]")).to_have_count(3)
    assert check(page) == []
    page.keyboard.press("Escape")

    page.get_by_role("button", name="Share…").click()
    page.get_by_role("button", name="Create link").click()
    link = page.get_by_label("Link", exact=True).input_value()
    assert check(page) == []
    page.goto(link)
    expect(page.locator("[data-test=answer]")).to_have_text("Oslo is the capital.")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_role("button", name="Delete link").click()
    expect(page.locator("[data-test=shared]")).to_have_count(0)
    page.goto(link)
    expect(page.get_by_role("alert")).to_contain_text("may have expired")


def test_tools_of_an_environment_are_offered_and_called_there(page_with_engines: Page, dashboard) -> None:
    page = page_with_engines
    tool = {"name": "weather", "description": "Looks.", "parameters": {"type": "object"}}
    environment = {"id": "env_aaaaaaaaaaaa", "name": "weather station", "can_call": True, "tools": [tool]}
    listed = {"items": [environment], "next_cursor": None}
    called = {"id": "ecl_aaaaaaaaaaaa", "state": "succeeded", "result": "-7", "error": None}
    page.route("**/api/v1/environments?*", lambda route: route.fulfill(json=listed))
    page.route("**/api/v1/environments/*/calls", lambda route: route.fulfill(status=202, json=called))
    page.route("**/api/v1/environments/*/calls/*", lambda route: route.fulfill(json=called))
    page.route("**/v1/chat/completions", _answer_with_tools)
    page.goto(f"{dashboard.url}/playground?m=base")

    page.get_by_role("button", name="Use an environment’s tools…").click()
    page.locator("[data-test=tools-choice]").click()
    page.get_by_text("weather station", exact=True).click()
    expect(page.get_by_label("Tools (JSON)")).to_have_value(re.compile('"name": "weather"'))
    page.get_by_label("Prompt for all columns").fill("Weather in Oslo?")
    page.get_by_label("Prompt for all columns").press("Control+Enter")
    page.get_by_role("button", name="Run in an environment…").click()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_label("Result of weather", exact=True)).to_have_value("-7")
    assert check(page) == []
    page.get_by_role("button", name="Send results").click()

    expect(page.locator("[data-test=answer] li")).to_be_visible()


def _check_themes(page: Page) -> list[str]:
    """What breaks a rule in the dark or in the light, which it is afterwards."""
    found = []
    for theme in ("dark", "light"):
        page.emulate_media(color_scheme=theme, reduced_motion="reduce")  # type: ignore[arg-type]
        page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
        found += check(page)
    return found


def test_a_blind_round_needs_no_mouse(page_with_engines: Page, dashboard, call_api) -> None:
    page = page_with_engines
    page.goto(f"{dashboard.url}/playground?m=base&m=trained&blind=1")
    prompt = page.get_by_label("Prompt for all columns")
    prompt.focus()
    for question in ("1+1=", "Sure?"):
        page.keyboard.type(question)
        page.keyboard.press("Control+Enter")
        expect(page.locator("[data-test=vote]")).to_be_focused()
        assert _check_themes(page) == []

        page.keyboard.press("4")
        expect(page.locator("[data-test=revealed]")).to_be_visible()
        expect(page.locator("[data-test=next]")).to_be_focused()
        assert _check_themes(page) == []
        page.keyboard.press("?")
        expect(page.get_by_role("dialog")).to_contain_text("Next round of a blind vote")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        page.keyboard.press("r")
        expect(prompt).to_be_focused()
        expect(page.locator("[data-test=letter]")).to_have_count(2)

    newest, before = call_api("GET", "/votes")["items"][:2]
    asked = [vote["messages"][-1]["content"] for vote in (newest, before)]
    assert asked == ["Sure?", "1+1="]
    assert {(vote["verdict"], vote["is_blind"]) for vote in (newest, before)} == {("neither", True)}


LOAD = {
    "measured_at": "2026-01-01T00:00:00Z",
    "running": 2,
    "waiting": 3,
    "kv_use": 0.25,
    "window_s": 60,
    "requests": 9,
    "prompt_tokens_per_s": 80,
    "generated_tokens_per_s": 41.5,
    "first_token_mean_s": 0.31,
    "first_token_p95_s": 0.48,
}


def test_what_is_loaded_is_listed_kept_and_stopped(page_with_engines: Page, dashboard, call_api) -> None:
    page = page_with_engines
    ids = {model["name"]: model["id"] for model in call_api("GET", "/models")["items"]}
    later = (datetime.now(UTC) + timedelta(seconds=590)).isoformat()
    base = {**_endpoint("base", ids["base"]), "load": LOAD, "stops_at": later}
    starting = {"state": "starting", "phase": "loading", "can_stop": False}
    trained = {**_endpoint("trained", ids["trained"]), **starting}
    listed = {"items": [base, trained], "next_cursor": None}
    asked: list[tuple[str, str, Any]] = []

    def change(route: Route) -> None:
        request = route.request
        asked.append((request.method, request.url.rpartition("/")[2], request.post_data_json))
        if request.method == "DELETE":
            listed["items"] = [{**base, "state": "stopped", "can_stop": False}]
        else:
            base["preemptible"] = False
        route.fulfill(json=base)

    page.route("**/api/v1/endpoints?*", lambda route: route.fulfill(json=listed))
    page.route("**/api/v1/endpoints/*", change)
    page.goto(dashboard.url)
    line = page.locator("[data-test=endpoints]")
    expect(line).to_contain_text("1 ready · 1 starting · 41.5 tokens/s · 3 requests waiting")
    line.get_by_role("link", name="Loaded models").click()

    card = page.locator("[data-test=endpoints]")
    row = card.locator("[data-name=base]")
    expect(row).to_contain_text("41.5")
    expect(row.locator("[data-test=idle]")).to_have_text(re.compile(r"^9 min \d+ s$"))
    for width in (1440, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert check(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") == width
    row.get_by_text("Keep running").click()
    expect(row.get_by_role("checkbox")).to_be_checked()
    row.get_by_role("button", name="Stop base").click()
    expect(card).to_contain_text("No model is loaded.")
    assert asked == [("PATCH", "ep_base", {"preemptible": False}), ("DELETE", "ep_base", None)]
