"""/v1: bodies that pass or are refused, streams, engines that die, models that are not loaded."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import httpx
import openai
import pytest
import uvicorn
from fastapi.testclient import TestClient
from sqlalchemy import Engine, event
from sqlalchemy.exc import OperationalError
from starlette.testclient import WebSocketDenialResponse
from trellis_api.core.database import Database
from trellis_api.core.ids import new_id
from trellis_api.core.request_guard import RequestGuard
from trellis_api.core.settings import Settings
from trellis_api.endpoints import repository
from trellis_api.endpoints.models import Endpoint
from trellis_api.endpoints.openai import engines
from trellis_api.endpoints.openai.forwarding import _Events
from trellis_api.jobs.models import Checkpoint
from trellis_api.main import create_app
from trellis_api.models.models import Model
from trellis_contracts.states import JobState
from trellis_testing.endpoint_life import KEY, Life
from trellis_testing.engine_server import USAGE, EngineServer
from trellis_testing.waiting import wait_until

from tests.backend.conftest import build_model

CHAT = "/v1/chat/completions"
#: What the starter model may take to load on two busy cores.
SLOW_START_S = 420.0
MESSAGES = [{"role": "user", "content": "1+1="}]


def ask(client: TestClient, model: str, **changes: Any) -> httpx.Response:
    return client.post(CHAT, json={"model": model, "messages": MESSAGES, **changes})


def events(text: str) -> list[Any]:
    """The events of a stream; the last one as it is."""
    lines = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [line if line == "[DONE]" else json.loads(line) for line in lines]


def test_a_chat_reaches_the_engine_with_its_key_and_name(
    client: TestClient, ready: dict[str, Any], engine: EngineServer
) -> None:
    tools = [{"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}]
    wanted = {"seed": 3, "n": 2, "stop": ["\n"], "logprobs": True, "top_logprobs": 5, "max_tokens": 8}

    answer = ask(client, ready["model"]["id"], tools=tools, user="me", **wanted)

    assert answer.status_code == 200, answer.text
    assert answer.json()["choices"][0]["message"]["content"] == "Hello!"
    (body,) = engine.bodies
    assert engine.paths == [CHAT]
    assert body["model"] == ready["name"]
    assert {name: body[name] for name in wanted} == wanted
    assert body["tools"] == tools
    assert "user" not in body


def test_requests_have_ids_that_engines_know(
    client: TestClient, ready: dict[str, Any], engine: EngineServer
) -> None:
    answers: list[Any] = [
        ask(client, ready["name"]),
        ask(client, ready["name"], stream=True),
        ask(client, "nobody"),
        client.get("/v1/models"),
        client.get("/v1/batches"),
    ]

    ids = [answer.headers["x-request-id"] for answer in answers]

    assert len(set(ids)) == len(ids)
    assert engine.request_ids == ids[:2]
    assert "x-request-id" not in client.get("/healthz").headers


@pytest.mark.parametrize("has_dashboard", [False, True])
@pytest.mark.parametrize(
    ("method", "path"),
    [("POST", "/v1/images/generations"), ("GET", "/v1/batches"), ("DELETE", "/v1/chat/completions")],
)
def test_what_is_not_offered_is_named(
    settings: Settings, database: Database, *, has_dashboard: bool, method: str, path: str
) -> None:
    if has_dashboard:
        folder = settings.data_root / "dashboard"
        folder.mkdir(parents=True)
        (folder / "index.html").write_text("<p>dashboard</p>")
        settings = settings.model_copy(update={"frontend_dist": folder})
    client = TestClient(create_app(settings, database))

    answer = client.request(method, path, json={} if method == "POST" else None)

    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"
    assert answer.json()["error"]["message"].startswith(f"{method} {path} is not supported.")


def test_a_field_that_is_not_offered_is_named(client: TestClient) -> None:
    answer = client.post("/v1/responses", json={"model": "any", "input": "?", "background": True})

    assert answer.status_code == 400
    assert answer.json()["error"]["param"] == "background"
    assert answer.json()["error"]["message"] == "background: This field is not supported."


@pytest.mark.parametrize("path", ["/v1/responses", "/v1/realtime?model=any", "/jobs"])
def test_a_websocket_is_refused_with_a_reason(client: TestClient, path: str) -> None:
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        client.websocket_connect(path),
    ):
        pass

    assert refused.value.status_code == 404
    assert "WebSocket connections are not supported" in refused.value.text


def test_a_server_that_can_send_no_reason_closes_a_websocket(settings: Settings) -> None:
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    async def receive() -> Any:
        return {"type": "websocket.connect"}

    scope = {"type": "websocket", "path": "/v1/responses", "headers": [], "extensions": {}}
    asyncio.run(RequestGuard(create_app(settings), settings)(scope, receive, send))

    assert [message["type"] for message in sent] == ["websocket.close"]


TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
NAMED = {"type": "function", "function": {"name": "add"}}


@pytest.mark.parametrize(
    ("choice", "param"),
    [(None, "tools"), ("auto", "tools"), ("required", "tool_choice"), (NAMED, "tool_choice")],
)
def test_tools_that_a_model_would_not_see_are_refused(
    client: TestClient, model: Model, life: Life, engine: EngineServer, choice: Any, param: str
) -> None:
    started = client.post(f"/api/v1/models/{model.id}/endpoint").json()
    life.report_ready(client, started, life.launch(started), engine.port, tool_problem="not_in_template")
    changes = {} if choice is None else {"tool_choice": choice}
    item = {"type": "function", "name": "add"}

    chat = ask(client, model.name, tools=[TOOL], **changes)
    response = client.post("/v1/responses", json={"model": model.name, "input": "?", "tools": [item]})

    assert chat.status_code == 400
    assert chat.json()["error"]["code"] == "tools_unsupported"
    assert chat.json()["error"]["param"] == param
    assert "chat template" in chat.json()["error"]["message"]
    assert (response.status_code, response.json()["error"]["code"]) == (400, "tools_unsupported")
    assert engine.bodies == []


def test_without_calls_a_model_that_sees_no_tools_answers(
    client: TestClient, model: Model, life: Life, engine: EngineServer
) -> None:
    started = client.post(f"/api/v1/models/{model.id}/endpoint").json()
    life.report_ready(client, started, life.launch(started), engine.port, tool_problem="unknown_call_format")

    assert ask(client, model.name).status_code == 200
    assert ask(client, model.name, tools=[TOOL], tool_choice="none").status_code == 200
    assert "Hermes" in ask(client, model.name, tools=[TOOL]).json()["error"]["message"]


def test_a_completion_reaches_the_engine(
    client: TestClient, ready: dict[str, Any], engine: EngineServer
) -> None:
    answer = client.post("/v1/completions", json={"model": ready["name"], "prompt": "1+1=", "logprobs": 1})

    assert answer.status_code == 200, answer.text
    assert (engine.paths, engine.bodies[0]["prompt"]) == (["/v1/completions"], "1+1=")


def test_an_answer_goes_on_from_the_tokens_that_an_engine_told(
    client: TestClient, ready: dict[str, Any], engine: EngineServer
) -> None:
    body = {"model": ready["name"], "prompt": [1, 2, 3], "return_token_ids": True}

    assert client.post("/v1/completions", json=body).status_code == 200
    assert ask(client, ready["name"], return_token_ids=True).status_code == 200

    assert engine.bodies[0]["prompt"] == [1, 2, 3]
    assert [each["return_token_ids"] for each in engine.bodies] == [True, True]


@pytest.mark.parametrize("shows_usage", [True, False])
def test_a_stream_passes_event_by_event(
    client: TestClient, ready: dict[str, Any], engine: EngineServer, shows_usage: bool
) -> None:
    options = {"stream_options": {"include_usage": True}} if shows_usage else {}

    answer = ask(client, ready["name"], stream=True, **options)

    assert answer.headers["content-type"].startswith("text/event-stream")
    *pieces, done = events(answer.text)
    assert done == "[DONE]"
    text = "".join(piece["choices"][0]["delta"]["content"] for piece in pieces if piece["choices"])
    assert text == "Hello!"
    assert [piece["usage"] for piece in pieces if "usage" in piece] == ([USAGE] if shows_usage else [])
    assert engine.bodies[0]["stream_options"] == {"include_usage": True}


def test_a_response_is_answered_as_the_official_client_asks_for_it(
    client: TestClient, admin_token: str, ready: dict[str, Any], engine: EngineServer
) -> None:
    official = openai.OpenAI(base_url="http://testserver/v1", api_key=admin_token, http_client=client)
    first = official.responses.create(model=ready["name"], input="1+1=", instructions="Be short.")
    assert (first.output_text, first.status) == ("Hello!", "completed")
    turns: Any = [{"role": "user", "content": "1+1="}, *first.output, {"role": "user", "content": "Sure?"}]
    form: Any = {"format": {"type": "json_schema", "name": "sum", "schema": {"type": "object"}}}

    official.responses.create(
        model=ready["name"], input=turns, text=form, max_output_tokens=9, temperature=0, metadata={"a": "b"}
    )

    asked, again = engine.bodies
    assert engine.paths == ["/v1/responses"] * 2
    assert asked == {"model": ready["name"], "input": "1+1=", "instructions": "Be short.", "store": False}
    assert again["input"][1] == {"type": "message", "role": "assistant", "content": "Hello!"}
    assert (again["max_output_tokens"], again["text"]) == (9, form)
    assert "metadata" not in again


def test_a_response_is_streamed_with_the_names_of_its_events(
    client: TestClient, admin_token: str, ready: dict[str, Any]
) -> None:
    official = openai.OpenAI(base_url="http://testserver/v1", api_key=admin_token, http_client=client)
    before = client.get("/metrics").text

    events = list(official.responses.create(model=ready["name"], input="1+1=", stream=True))

    deltas = [event.delta for event in events if event.type == "response.output_text.delta"]
    assert "".join(deltas) == "Hello!"
    last = events[-1]
    assert last.type == "response.completed"
    assert last.response.usage is not None
    assert last.response.usage.output_tokens == 3
    raw = client.post("/v1/responses", json={"model": ready["name"], "input": "?", "stream": True}).text
    assert raw.startswith("event: response.created\ndata: {")
    assert read_tokens(client.get("/metrics").text) - read_tokens(before) == 2 * 3


ADD: dict[str, Any] = {
    "type": "function",
    "name": "add",
    "description": "Adds.",
    "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    "strict": True,
}


def test_a_response_calls_a_function_and_the_client_sends_its_output_back(
    client: TestClient, admin_token: str, ready: dict[str, Any], engine: EngineServer
) -> None:
    official = openai.OpenAI(base_url="http://testserver/v1", api_key=admin_token, http_client=client)
    engine.call = {"name": "add", "arguments": '{"a": 1}'}
    tools: Any = [ADD]

    first = official.responses.create(
        model=ready["name"], input="1+1=", tools=tools, tool_choice="required", parallel_tool_calls=False
    )
    (call,) = first.output
    assert call.type == "function_call"
    engine.call = None
    turns: Any = [
        {"role": "user", "content": "1+1="},
        *first.output,
        {"type": "function_call_output", "call_id": call.call_id, "output": "2"},
    ]
    second = official.responses.create(model=ready["name"], input=turns, tools=tools)

    asked, again = engine.bodies
    assert asked["tools"] == [ADD]
    assert (asked["tool_choice"], asked["parallel_tool_calls"]) == ("required", False)
    assert again["input"][1:] == [
        {"type": "function_call", "call_id": "call_1", "name": "add", "arguments": '{"a": 1}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "2"},
    ]
    assert second.output_text == "Hello!"


def test_the_arguments_of_a_call_are_streamed(
    client: TestClient, admin_token: str, ready: dict[str, Any], engine: EngineServer
) -> None:
    official = openai.OpenAI(base_url="http://testserver/v1", api_key=admin_token, http_client=client)
    engine.call = {"name": "add", "arguments": '{"a": 1}'}
    tools: Any = [ADD]

    events = list(official.responses.create(model=ready["name"], input="?", tools=tools, stream=True))

    done = [event for event in events if event.type == "response.function_call_arguments.done"]
    assert [event.arguments for event in done] == ['{"a": 1}']


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"tool_choice": "required"}, "'tools' is empty"),
        ({"tool_choice": {"type": "function", "name": "sub"}, "tools": [ADD]}, "'sub'"),
        ({"input": [{"type": "function_call_output", "call_id": "c9", "output": "2"}]}, "'c9'"),
    ],
)
def test_a_call_that_does_not_fit_together_is_explained(
    client: TestClient, ready: dict[str, Any], engine: EngineServer, change: dict[str, Any], word: str
) -> None:
    answer = client.post("/v1/responses", json={"model": ready["name"], "input": "?", **change})

    assert answer.status_code == 400
    assert word in answer.json()["error"]["message"]
    assert engine.bodies == []


def read_tokens(metrics: str) -> float:
    """Tokens that engines wrote."""
    mark = 'trellis_endpoint_tokens_total{direction="completion"} '
    return sum(float(line.removeprefix(mark)) for line in metrics.splitlines() if line.startswith(mark))


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"tools": [{"type": "web_search"}]}, "tools"),
        ({"tools": [{"type": "function", "name": "a b"}]}, "tools"),
        ({"tools": [{"type": "function", "name": "a", "parameters": {"pattern": "(a+)+$"}}]}, "tools"),
        ({"tool_choice": "sometimes"}, "tool_choice"),
        ({"input": [{"type": "computer_call", "call_id": "c"}]}, "input"),
        ({"store": True}, "store"),
        ({"background": True}, "background"),
        ({"input": []}, "input"),
        ({"max_output_tokens": 10**6}, "max_output_tokens"),
        ({"text": {"format": {"type": "grammar"}}}, "text.format"),
    ],
)
def test_what_a_response_cannot_have_is_refused_by_name(
    client: TestClient, ready: dict[str, Any], engine: EngineServer, change: dict[str, Any], param: str
) -> None:
    answer = client.post("/v1/responses", json={"model": ready["name"], "input": "?", **change})

    assert answer.status_code == 400
    assert str(answer.json()["error"]["param"]).startswith(param)
    assert engine.bodies == []


def read_outcomes(client: TestClient) -> dict[str, int]:
    """How the requests of the one endpoint ended, as its page has it."""
    (endpoint,) = client.get("/api/v1/endpoints").json()["items"]
    return {name: count for name, count in endpoint["requests"].items() if name != "since" and count}


def read_figure(client: TestClient, endpoint_id: str, outcome: str) -> float:
    """The same in the figures for Prometheus; 0 where there is none."""
    label = f'{{endpoint="{endpoint_id}",outcome="{outcome}",route="{CHAT}"}}'
    name = f"trellis_endpoint_requests_total{label}"
    lines = client.get("/metrics").text.splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if line.startswith(name))


def test_tokens_and_requests_are_counted(client: TestClient, ready: dict[str, Any]) -> None:
    def read() -> dict[str, float]:
        lines = client.get("/metrics").text.splitlines()
        pairs = [line.rsplit(" ", 1) for line in lines if line.startswith("trellis_endpoint_")]
        return {name: float(value) for name, value in pairs}

    before = read()
    ask(client, ready["name"])
    ask(client, ready["name"], stream=True)
    after = read()

    grown = {name: value - before.get(name, 0) for name, value in after.items() if "_created" not in name}
    assert grown['trellis_endpoint_tokens_total{direction="completion"}'] == 2 * USAGE["completion_tokens"]
    label = f'{{endpoint="{ready["id"]}",outcome="answered",route="/v1/chat/completions"}}'
    assert grown[f"trellis_endpoint_requests_total{label}"] == 2
    assert read_outcomes(client) == {"answered": 2}


@pytest.mark.parametrize(
    "extra",
    [
        {"chat_template": "{{ 1 }}"},
        {"chat_template_kwargs": {"chat_template": "{{ 1 }}"}},
        {"mm_processor_kwargs": {}},
        {"media_io_kwargs": {}},
        {"documents": [{"text": "x"}]},
        {"vllm_xargs": {"a": 1}},
        {"guided_regex": "(a+)+$"},
        {"structured_outputs": {"regex": "(a+)+$"}},
        {"kv_transfer_params": {}},
        {"priority": 3},
        {"cache_salt": "x"},
        {"n": 17},
        {"temperature": -1},
        {"top_logprobs": 21, "logprobs": True},
        {"max_tokens": 4097},
        {"max_completion_tokens": 4097},
        {"max_tokens": 10**6},
        {"tools": [{"type": "function", "function": {"name": "a b"}}]},
        {"tools": [{"type": "function"}]},
        {"tools": "add"},
        {"tools": [{"type": "retrieval"}]},
        {"tool_choice": {"type": "function"}},
        {"stop": [str(number) for number in range(17)]},
        {
            "messages": [
                {"role": "user", "content": [{"type": "image_url", "image_url": {"url": "http://x/"}}]}
            ]
        },
        {
            "messages": [
                {"role": "user", "content": [{"type": "video_url", "video_url": {"url": "file:///x"}}]}
            ]
        },
        {"messages": []},
    ],
)
def test_what_is_not_passed_on_is_refused_by_name(
    client: TestClient, ready: dict[str, Any], engine: EngineServer, extra: dict[str, Any]
) -> None:
    answer = ask(client, ready["name"], **extra)

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (set(error), error["type"]) == ({"message", "type", "param", "code"}, "invalid_request_error")
    name = "max_tokens" if "max_completion_tokens" in extra else next(iter(extra))
    assert name in str(error["param"])
    assert engine.bodies == []


def test_what_is_refused_before_its_model_is_looked_for_is_counted_too(
    client: TestClient, ready: dict[str, Any]
) -> None:
    before = read_figure(client, "", "refused")

    ask(client, ready["name"], tools="add")
    ask(client, ready["name"], max_tokens=10**6)
    client.post(CHAT, content=b"{", headers={"content-type": "application/json"})
    ask(client, "nobody")

    assert read_figure(client, "", "refused") - before == 4
    assert read_outcomes(client) == {}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "(a+)+$"},
        {"type": "array", "maxItems": 100_000},
        {"type": "string", "format": "binary"},
        {"type": "string", "format": ["date"]},
        {"$ref": "http://elsewhere/schema.json"},
        {"properties": {"a": {"properties": {"b": {"type": "string", "pattern": "x"}}}}},
        {"description": "x" * 70_000},
    ],
)
def test_schemas_without_bounds_are_refused(
    client: TestClient, ready: dict[str, Any], engine: EngineServer, schema: dict[str, Any]
) -> None:
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}
    tool = {"type": "function", "function": {"name": "add", "parameters": schema}}

    answers = [ask(client, ready["name"], response_format=form), ask(client, ready["name"], tools=[tool])]

    assert [answer.status_code for answer in answers] == [400, 400]
    assert engine.bodies == []


def test_a_schema_within_bounds_passes_whatever_its_properties_are_called(
    client: TestClient, ready: dict[str, Any], engine: EngineServer
) -> None:
    schema = {"type": "object", "properties": {"pattern": {"type": "string", "maxLength": 20}}}
    form = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}

    assert ask(client, ready["name"], response_format=form).status_code == 200
    assert engine.bodies[0]["response_format"] == form


def test_a_turn_is_sent_back_as_a_client_of_openai_has_it(
    client: TestClient, ready: dict[str, Any], engine: EngineServer
) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    turns = [
        *MESSAGES,
        {"role": "assistant", "content": None, "refusal": None, "annotations": [], "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": [{"type": "text", "text": "2"}]},
    ]

    assert ask(client, ready["name"], messages=turns).status_code == 200
    assert engine.bodies[0]["messages"][1] == {"role": "assistant", "tool_calls": [call]}


def test_a_prompt_of_a_megabyte_is_answered_by_the_engine_and_kept_apart_from_the_next(
    client: TestClient, ready: dict[str, Any], engine: EngineServer
) -> None:
    engine.refusal = (400, {"message": "too long", "type": "x", "param": "messages", "code": 400})
    prompt = "x" * 2**20

    refused = ask(client, ready["name"], messages=[{"role": "user", "content": prompt}])
    engine.refusal = None
    answered = ask(client, ready["name"])

    assert (refused.status_code, refused.json()["error"]["message"]) == (400, "too long")
    assert len(refused.content) < 1000, "the prompt is not sent back"
    assert answered.status_code == 200
    assert engine.bodies[1]["messages"] == MESSAGES


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/v1/completions", {"prompt": "?"}),
        ("/v1/responses", {"input": "?"}),
        ("/v1/embeddings", {"input": "?"}),
    ],
)
def test_a_wrong_token_and_a_foreign_model_are_refused_on_every_route(
    client: TestClient, path: str, more: dict[str, Any], ready: dict[str, Any], engine: EngineServer
) -> None:
    unknown = client.post(path, json={"model": "somebody/else", **more})
    wrong = client.post(
        path, json={"model": ready["name"], **more}, headers={"Authorization": "Bearer wrong"}
    )

    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (401, "authentication_error")
    assert engine.bodies == []


def test_errors_have_the_form_of_openais(client: TestClient, anonymous: TestClient, model: Model) -> None:
    unknown = ask(client, "nobody")
    assert (unknown.status_code, unknown.json()["error"]["code"]) == (404, "model_not_found")
    wrong = client.post(CHAT, json={}, headers={"Authorization": "Bearer wrong"})
    assert (wrong.status_code, wrong.json()["error"]["type"]) == (401, "authentication_error")
    nowhere = client.get("/v1/nowhere")
    assert (nowhere.status_code, nowhere.json()["error"]["code"]) == (404, "not_found")
    broken = client.post(CHAT, content=b'{"model": "\xff"}', headers={"content-type": "application/json"})
    assert (broken.status_code, broken.json()["error"]["code"]) == (400, "invalid_request")


def test_a_checkpoint_that_is_not_there_is_404(client: TestClient) -> None:
    answer = ask(client, "job_aaaaaaaaaaaa:20")

    assert (answer.status_code, answer.json()["error"]["param"]) == (404, "model")


def test_models_are_listed_page_by_page_to_the_last(
    client: TestClient, database: Database, settings: Settings
) -> None:
    with database.write() as session:
        judge = build_model(settings, name="judge", architecture="Qwen2ForSequenceClassification")
        session.add_all([*(build_model(settings, name=f"m{number}") for number in range(5)), judge])

    whole = client.get("/v1/models").json()
    pages, after = [], None
    while not pages or pages[-1]["has_more"]:
        asked = {"limit": 2} | ({"after": after} if after else {})
        pages.append(client.get("/v1/models", params=asked).json())
        after = pages[-1]["last_id"]

    assert (whole["has_more"], len(whole["data"])) == (False, 5)
    assert [len(page["data"]) for page in pages] == [2, 2, 1]
    assert [each for page in pages for each in page["data"]] == whole["data"]
    unknown = client.get("/v1/models", params={"after": "nobody"})
    assert (unknown.status_code, unknown.json()["error"]["param"]) == (404, "after")


def test_whatever_a_request_may_name_has_its_time(
    client: TestClient, database: Database, settings: Settings, model: Model, make_job: Callable[..., str]
) -> None:
    job_id = make_job(model_id=model.id)
    made_at, saved_at = (datetime(2026, 1, day, tzinfo=UTC) for day in (1, 2))
    with database.write() as session:
        session.merge(model).created_at = made_at
        session.add(Checkpoint(job_id=job_id, step=7, attempt=1, path="x", size_bytes=1, created_at=saved_at))
    client.post("/api/v1/registry", json={"name": "bot", "model": model.id})
    client.put("/api/v1/registry/bot/aliases/production", json={"version": 1})

    names = (model.name, model.id, "bot:1", f"{job_id}:7", f"{job_id}:latest", "bot:production")
    *created, moved = (client.get(f"/v1/models/{name}").json()["created"] for name in names)

    expected = [made_at] * 3 + [saved_at] * 2
    assert created == [int(each.timestamp()) for each in expected]
    listed = {each["id"]: each["created"] for each in client.get("/v1/models").json()["data"]}
    assert listed["bot:production"] == moved > created[0]


def test_pages_of_models_end_also_after_an_alias_or_a_checkpoint(
    client: TestClient, life: Life, model: Model, make_job: Callable[..., str], database: Database
) -> None:
    client.post("/api/v1/registry", json={"name": "bot", "model": model.id})
    client.put("/api/v1/registry/bot/aliases/production", json={"version": 1})
    with_alias = client.get("/v1/models").json()
    job_id = make_job(model_id=model.id)
    serve_checkpoints(database, make_job, job_id, steps=[7])

    with_checkpoint = client.get("/v1/models").json()

    assert (with_alias["last_id"], with_checkpoint["last_id"]) == ("bot:production", f"{job_id}:7")
    for each in (with_alias, with_checkpoint):
        page = client.get("/v1/models", params={"after": each["last_id"]}).json()
        assert (page["data"], page["has_more"], page["last_id"]) == ([], False, None)


def test_served_checkpoints_are_listed_by_one_query_and_not_without_end(
    client: TestClient,
    model: Model,
    make_job: Callable[..., str],
    database: Database,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    statements: list[str] = []

    def note(*seen: Any) -> None:
        statements.append(seen[2])

    def count_queries() -> int:
        statements.clear()
        client.get("/v1/models")
        return len(statements)

    job_id = make_job(model_id=model.id)
    serve_checkpoints(database, make_job, job_id, steps=[1])
    event.listen(Engine, "before_cursor_execute", note)
    try:
        of_one = count_queries()
        serve_checkpoints(database, make_job, job_id, steps=range(2, 7))
        of_six = count_queries()
    finally:
        event.remove(Engine, "before_cursor_execute", note)
    monkeypatch.setattr("trellis_api.endpoints.openai.names._MAX_SERVED", 2)

    assert of_six == of_one > 0
    shown = [each["id"] for each in client.get("/v1/models").json()["data"]]
    assert shown == [model.name, f"{job_id}:6", f"{job_id}:5"]


def serve_checkpoints(
    database: Database, make_job: Callable[..., str], job_id: str, *, steps: Iterable[int]
) -> None:
    """Write checkpoints of a job with the endpoints that served them, one after the other."""
    for step in steps:
        engine_job = make_job(kind="serve")
        with database.write() as session:
            now = datetime(2026, 1, step, tzinfo=UTC)
            session.add(
                Checkpoint(job_id=job_id, step=step, attempt=1, path="x", size_bytes=1, created_at=now)
            )
            session.add(
                Endpoint(
                    id=new_id("ep"),
                    job_id=engine_job,
                    name=f"{job_id}:{step}",
                    target_job_id=job_id,
                    target_step=step,
                    created_at=now,
                )
            )


def test_models_are_listed(client: TestClient, model: Model) -> None:
    listed = client.get("/v1/models").json()

    assert (listed["object"], [card["id"] for card in listed["data"]]) == ("list", [model.name])
    assert client.get(f"/v1/models/{model.name}").json()["id"] == model.name
    assert client.get("/v1/models/nobody").status_code == 404


def test_a_model_that_is_not_loaded_is_started_and_the_client_told_to_come_back(
    client: TestClient, model: Model
) -> None:
    answer = ask(client, model.name)

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "endpoint_starting")
    assert int(answer.headers["retry-after"]) > 0
    (endpoint,) = client.get("/api/v1/endpoints").json()["items"]
    assert (endpoint["name"], endpoint["state"]) == (model.name, "starting")
    assert read_outcomes(client) == {"not_ready": 1}


def test_a_model_that_failed_lately_is_not_tried_again_by_each_request(
    client: TestClient, ready: dict[str, Any], life: Life
) -> None:
    life.end(ready, JobState.FAILED, reason="It has no config.json.", cause="engine_not_started")

    answer = ask(client, ready["name"])

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "endpoint_failed")
    assert "no config.json" in answer.json()["error"]["message"]
    assert client.get(f"/api/v1/endpoints/{ready['id']}").json()["attempt"] == 1


def test_an_engine_that_ran_for_a_minute_and_died_is_restarted_at_once(
    client: TestClient, ready: dict[str, Any], life: Life
) -> None:
    life.age(ready, 61)
    life.end(ready, JobState.CRASHED, reason="It died.", cause="engine_died")

    answer = ask(client, ready["name"])

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "endpoint_starting")
    assert client.get(f"/api/v1/endpoints/{ready['id']}").json()["attempt"] == 2


def test_an_engine_that_died_young_is_to_be_retried_when_a_minute_has_passed(
    client: TestClient, ready: dict[str, Any], life: Life
) -> None:
    life.age(ready, 45)
    life.end(ready, JobState.CRASHED, reason="It died.", cause="engine_died")

    answer = ask(client, ready["name"])

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "endpoint_failed")
    assert 10 <= int(answer.headers["retry-after"]) <= 15


def test_a_busy_database_costs_no_answer(
    client: TestClient, ready: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise OperationalError("UPDATE endpoints", {}, Exception("database is locked"))

    monkeypatch.setattr(repository, "note_use", refuse)

    assert ask(client, ready["name"]).status_code == 200


def test_a_stop_while_the_model_is_loading_is_not_undone_by_a_request_that_waits(
    client: TestClient, model: Model, life: Life, settings: Settings
) -> None:
    settings.endpoint_wait_s = 30
    endpoint = client.post(f"/api/v1/models/{model.id}/endpoint", json={}).json()
    life.launch(endpoint)

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, client, model.name)
        time.sleep(1)  # it has seen the endpoint load
        life.end(endpoint, JobState.STOPPED)
        answer = asked.result()

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "endpoint_stopped")
    assert "stopped while it was loading" in answer.json()["error"]["message"]
    assert client.get(f"/api/v1/endpoints/{endpoint['id']}").json()["state"] == "stopped"


def test_an_engines_refusal_is_told_in_its_words(
    client: TestClient, ready: dict[str, Any], engine: EngineServer
) -> None:
    engine.refusal = (400, {"message": "too long by 3", "type": "x", "param": "messages", "code": 400})

    error = ask(client, ready["name"], stream=True).json()["error"]

    assert (error["message"], error["param"], error["code"]) == (
        "too long by 3",
        "messages",
        "engine_refused",
    )
    assert ask(client, ready["name"], max_tokens=10**6).status_code == 400
    assert read_outcomes(client) == {"refused": 1}  # the other one was refused before it had an endpoint
    assert read_figure(client, ready["id"], "refused") == 1


def test_an_engine_that_nobody_answers_for_is_a_clear_error(
    client: TestClient, model: Model, life: Life
) -> None:
    endpoint = client.post(f"/api/v1/models/{model.id}/endpoint").json()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    life.report_ready(client, endpoint, life.launch(endpoint), port)

    answer = ask(client, model.name)

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "engine_lost")


def test_a_stream_that_breaks_ends_with_an_error(
    client: TestClient, ready: dict[str, Any], engine: EngineServer
) -> None:
    engine.dies_after = 2

    *_, last = events(ask(client, ready["name"], stream=True).text)

    assert last["error"]["code"] == "engine_lost"
    assert read_outcomes(client) == {"lost": 1}
    assert read_figure(client, ready["id"], "lost") == 1


@pytest.mark.parametrize("stream", [False, True])
def test_requests_that_get_no_answer_in_time_are_told_from_lost_ones(
    client: TestClient, ready: dict[str, Any], engine: EngineServer, settings: Settings, stream: bool
) -> None:
    settings.endpoint_answer_s = 0.05  # less than from one comment of the stand-in's streams to the next
    engine.may_go_on.clear()

    answer = ask(client, ready["name"], stream=stream)

    assert "engine_silent" in answer.text
    assert read_outcomes(client) == {"timed_out": 1}


def test_what_an_engine_says_as_it_dies_ends_the_stream(
    client: TestClient, ready: dict[str, Any], engine: EngineServer
) -> None:
    engine.last_words = "EngineCore encountered an issue."

    *_, last = events(ask(client, ready["name"], stream=True).text)

    assert (last["error"]["code"], last["error"]["type"]) == ("engine_lost", "server_error")
    assert "EngineCore" in last["error"]["message"]


def test_a_request_does_not_hang_at_an_engine_whose_endpoint_has_ended(
    client: TestClient, ready: dict[str, Any], engine: EngineServer, life: Life
) -> None:
    engine.may_go_on.clear()  # its node is gone: the connection stands, and nothing comes
    timer = threading.Timer(0.5, life.end, (ready, JobState.CRASHED), {"reason": "gone"})
    timer.start()

    began = time.monotonic()
    answer = ask(client, ready["name"])

    assert (answer.status_code, answer.json()["error"]["code"]) == (503, "engine_lost")
    assert time.monotonic() - began < 10
    timer.join()


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_that_outlasts_a_stop_is_told_of_the_stop(
    client: TestClient, ready: dict[str, Any], engine: EngineServer, life: Life, stream: bool
) -> None:
    engine.last_words = "EngineCore encountered an issue. See stack trace (above) for the root cause."
    engine.may_go_on.clear()

    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, client, ready["name"], stream=stream)
        wait_until(lambda: bool(engine.bodies), 10, "the engine got the request")
        client.delete(f"/api/v1/endpoints/{ready['id']}")
        engine.may_go_on.set()
        answer = asked.result()

    assert "endpoint_stopped" in answer.text
    assert "before the response was finished" in answer.text
    assert answer.status_code == (200 if stream else 503)
    assert read_outcomes(client) == {"stopped": 1}


def test_requests_beyond_the_limit_are_429(client: TestClient, ready: dict[str, Any]) -> None:
    engines = client.app.state.engines  # type: ignore[attr-defined]
    engines._open = 64

    answer = ask(client, ready["name"])

    assert (answer.status_code, answer.json()["error"]["type"]) == (429, "rate_limit_error")
    engines._open = 0
    assert ask(client, ready["name"]).status_code == 200
    assert engines._open == 0


def test_requests_that_wait_for_one_model_leave_room_for_others(
    client: TestClient, database: Database, model: Model, settings: Settings, ready: dict[str, Any]
) -> None:
    settings.endpoint_wait_s, settings.endpoint_max_requests = 4, 8
    other = Model(**{**model.model_dump(), "id": new_id("mdl"), "name": "unloaded"})
    with database.write() as session:
        session.add(other)
        names = [other.name, other.id] * 4

    with ThreadPoolExecutor(8) as pool:
        began = time.monotonic()
        waiting = [pool.submit(ask, client, name) for name in names]
        time.sleep(2)
        refused = [each.result() for each in waiting if each.done()]
        answer = ask(client, ready["name"])
        took_s = time.monotonic() - began
        everybody = [each.result() for each in waiting]

    assert took_s < 4, "the others still waited"
    assert answer.status_code == 200
    assert len(refused) == 6
    for each in refused:
        assert (each.status_code, each.headers["retry-after"]) == (503, "10")
        assert "2 requests are waiting for it already." in each.json()["error"]["message"]
    assert {(each.status_code, each.json()["error"]["code"]) for each in everybody} == {
        (503, "endpoint_starting")
    }
    engines = client.app.state.engines  # type: ignore[attr-defined]
    assert not engines._waiting


@contextmanager
def listening(client: TestClient) -> Iterator[str]:
    """The application behind a real server, which tells it of clients that leave."""
    config = uvicorn.Config(client.app, host="127.0.0.1", port=0, lifespan="off", log_level="warning")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    finally:
        server.should_exit = True
        thread.join(10)


def test_the_official_client_as_it_is_gets_the_answer_of_a_model_that_loads(
    client: TestClient,
    admin_token: str,
    model: Model,
    life: Life,
    engine: EngineServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engines, "_RETRY_S", 1)
    endpoint = client.post(f"/api/v1/models/{model.id}/endpoint").json()
    token = life.launch(endpoint)

    with listening(client) as url, ThreadPoolExecutor(1) as pool:
        official = openai.OpenAI(base_url=f"{url}/v1", api_key=admin_token)
        asked = pool.submit(official.chat.completions.create, model=model.name, messages=MESSAGES)  # type: ignore[arg-type]
        wait_until(lambda: read_outcomes(client).get("not_ready") == 2, 30, "it was asked twice")
        life.report_ready(client, endpoint, token, engine.port)
        answer = asked.result()

    assert answer.choices[0].message.content
    assert read_outcomes(client) == {"answered": 1, "not_ready": 2}


def test_requests_and_retries_of_the_official_client_cover_a_slow_start(tmp_path: Path) -> None:
    wait_s = Settings(data_root=tmp_path).endpoint_wait_s
    retries = openai.DEFAULT_MAX_RETRIES

    assert (retries + 1) * wait_s + retries * engines._RETRY_S >= SLOW_START_S
    # Its own time-out ends none of them.
    assert openai.DEFAULT_TIMEOUT.read is not None
    assert wait_s < openai.DEFAULT_TIMEOUT.read / 2


def test_a_client_that_leaves_ends_its_request_on_the_engine(
    client: TestClient, admin_token: str, ready: dict[str, Any], engine: EngineServer
) -> None:
    engine.may_go_on.clear()
    body = {"model": ready["name"], "messages": MESSAGES, "stream": True}
    headers = {"Authorization": f"Bearer {admin_token}"}

    with (
        listening(client) as url,
        httpx.stream("POST", f"{url}{CHAT}", json=body, headers=headers) as answer,
    ):
        assert "Hel" in next(answer.iter_lines())
        answer.close()
        assert engine.was_left.wait(10)
        wait_until(lambda: read_outcomes(client) == {"broken_off": 1}, 10, "the request is counted")


def test_no_answer_shows_the_engines_key(client: TestClient, ready: dict[str, Any]) -> None:
    texts = [ask(client, ready["name"]).text, client.get("/api/v1/endpoints").text]

    assert not any(KEY in text for text in texts)


def test_events_are_cut_from_chunks_that_end_anywhere() -> None:
    usage = '{"choices":[],"usage":{"prompt_tokens":1,"completion_tokens":2}}'
    text = f'event: a\ndata: {{"n":1}}\n\n: still here\n\ndata: é\r\n\r\ndata: {usage}\n\ndata: [DONE]\n\n'
    sent = text.encode()

    for size in (1, 3, len(sent)):
        events = _Events(shows_usage=False)
        taken = [events.take(sent[at : at + size]) for at in range(0, len(sent), size)]

        assert b"".join(passed for passed, _ in taken).decode() == (
            'event: a\ndata: {"n":1}\n\ndata: é\n\ndata: [DONE]\n\n'
        )
        assert {error for _, error in taken} == {None}


def test_events_before_an_engines_error_are_passed_on() -> None:
    events = _Events(shows_usage=False)

    passed, error = events.take(b'data: {"n":1}\n\ndata: {"error":{"message":"It died."}}\n\n')

    assert (passed, error) == (b'data: {"n":1}\n\n', "It died.")
