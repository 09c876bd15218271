"""/v1/tokenize and continued messages: what a model reads of a chat, and what is refused before that."""

from typing import Any

import pytest
from fastapi.testclient import TestClient
from trellis_api.endpoints.openai import forwarding
from trellis_api.endpoints.openai.rendering import cut_at_added
from trellis_api.models.models import Model
from trellis_testing.endpoint_life import Life
from trellis_testing.engine_server import EngineServer

MESSAGES = [{"role": "user", "content": "1+1="}]
BEGUN = [*MESSAGES, {"role": "assistant", "content": "The sum"}]
CALLING = {"role": "assistant", "content": "x"}
CALL = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


def test_the_prompt_of_a_chat_is_read_from_its_engine(
    client: TestClient, ready: dict[str, Any], engine: EngineServer
) -> None:
    body = {"model": ready["name"], "messages": MESSAGES, "tools": [TOOL]}

    answer = client.post("/v1/tokenize", json=body)

    assert answer.status_code == 200, answer.text
    found = answer.json()
    assert (found["count"], found["max_model_len"], found["tokens"]) == (5, 64, [1, 2, 3, 4, 5])
    assert [(piece["text"], piece["is_special"]) for piece in found["pieces"]] == [
        ("<|im_start|>", True), ("user\n1+1=", False), ("<|im_end|>", True), ("\n", False),
    ]  # fmt: skip
    assert engine.paths == ["/tokenize", "/detokenize", "/tokenizer_info"]
    (endpoint,) = client.get("/api/v1/endpoints").json()["items"]
    assert endpoint["requests"]["answered"] == 1
    (asked, read) = engine.bodies
    assert asked == body
    assert read == {"model": ready["name"], "tokens": [1, 2, 3, 4, 5]}


def test_a_text_is_tokenized_without_anything_around_it(
    client: TestClient, ready: dict[str, Any], engine: EngineServer
) -> None:
    engine.tokens = [3]

    answer = client.post("/v1/tokenize", json={"model": ready["name"], "prompt": "1+1="})

    assert (answer.status_code, answer.json()["tokens"]) == (200, [3])
    assert answer.json()["pieces"] == [{"text": "1+1=", "is_special": False}]
    assert engine.bodies[0] == {"model": ready["name"], "prompt": "1+1=", "add_special_tokens": False}


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"messages": MESSAGES, "prompt": "1+1="},
        {"prompt": "1+1=", "tools": [TOOL]},
        {"prompt": "1+1=", "add_generation_prompt": True},
        {"prompt": ""},
    ],
)
def test_a_text_comes_alone(
    client: TestClient, ready: dict[str, Any], engine: EngineServer, fields: dict[str, Any]
) -> None:
    answer = client.post("/v1/tokenize", json={"model": ready["name"], **fields})

    assert (answer.status_code, "prompt" in answer.json()["error"]["message"]) == (400, True)
    assert engine.bodies == []


def test_tokens_that_a_message_spells_out_are_marked_too() -> None:
    pieces = cut_at_added("<s>a<s>b", [1, 7, 1, 8, 1], {1: "<s>"})

    assert [(piece.text, piece.is_special) for piece in pieces] == [
        ("<s>", True), ("a", False), ("<s>", True), ("b", False),
    ]  # fmt: skip


def test_the_prompt_of_a_message_that_goes_on_has_an_open_end(
    client: TestClient, ready: dict[str, Any], engine: EngineServer
) -> None:
    body = {"model": ready["name"], "messages": BEGUN, "continue_final_message": True}

    rendered = client.post("/v1/tokenize", json=body)
    answered = client.post("/v1/chat/completions", json=body)

    assert (rendered.status_code, answered.status_code) == (200, 200)
    for asked in (engine.bodies[0], engine.bodies[-1]):
        assert (asked["continue_final_message"], asked["add_generation_prompt"]) == (True, False)
        assert asked["messages"] == BEGUN


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/tokenize"])
@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"messages": MESSAGES}, "'assistant'"),
        ({"messages": [*MESSAGES, {"role": "assistant", "content": ""}]}, "a text"),
        ({"messages": [*MESSAGES, {**CALLING, "tool_calls": [CALL]}]}, "tool calls"),
        ({"messages": BEGUN, "add_generation_prompt": True}, "exclude each other"),
    ],
)  # fmt: skip
def test_what_cannot_go_on_is_refused(
    client: TestClient, ready: dict[str, Any], engine: EngineServer, path: str, changes: Any, word: str
) -> None:
    answer = client.post(path, json={"model": ready["name"], "continue_final_message": True, **changes})

    assert answer.status_code == 400
    assert word in answer.json()["error"]["message"]
    assert engine.bodies == []


def test_templates_of_a_request_and_unknown_models_are_refused(
    client: TestClient, ready: dict[str, Any], engine: EngineServer
) -> None:
    body = {"model": ready["name"], "messages": MESSAGES}

    with_template = client.post("/v1/tokenize", json={**body, "chat_template": "{{ 1 }}"})
    unknown = client.post("/v1/tokenize", json={**body, "model": "nobody"})
    del client.headers["authorization"]
    anonymous = client.post("/v1/tokenize", json=body)

    assert (with_template.status_code, "chat_template" in with_template.text) == (400, True)
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
    assert anonymous.status_code == 401
    assert engine.bodies == []


def test_a_prompt_with_tools_that_the_model_would_not_see_is_refused(
    client: TestClient, model: Model, life: Life, engine: EngineServer
) -> None:
    started = client.post(f"/api/v1/models/{model.id}/endpoint").json()
    life.report_ready(client, started, life.launch(started), engine.port, tool_problem="not_in_template")

    answer = client.post("/v1/tokenize", json={"model": model.name, "messages": MESSAGES, "tools": [TOOL]})

    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "tools_unsupported")


def test_what_the_engine_says_is_bounded_and_checked(
    client: TestClient, ready: dict[str, Any], engine: EngineServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"model": ready["name"], "messages": MESSAGES}
    engine.refusal = (400, {"message": "The template says no.", "param": None})
    refused = client.post("/v1/tokenize", json=body)
    engine.refusal = None
    engine.tokens = "none"  # type: ignore[assignment]
    engine.vocabulary = dict.fromkeys("none", "x")  # type: ignore[arg-type]
    unreadable = client.post("/v1/tokenize", json=body)
    monkeypatch.setattr(forwarding, "_MAX_ANSWER_BYTES", 10)
    long = client.post("/v1/tokenize", json=body)

    assert (refused.status_code, refused.json()["error"]["message"]) == (400, "The template says no.")
    assert (unreadable.status_code, unreadable.json()["error"]["code"]) == (502, "engine_error")
    assert (long.status_code, "longer than" in long.text) == (502, True)
