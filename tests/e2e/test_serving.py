"""A model answers the official client of OpenAI's, streams, dies and stops when nobody uses it: real vLLM."""

import time
from collections.abc import Iterator
from typing import Any

import openai
import psutil
import pytest
from trellis_testing.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
QUESTION: list[Any] = [{"role": "user", "content": "12+30="}]
START_S = 420.0
#: From the death of an engine to the end of its endpoint.
SETTLED_S = 30.0


@pytest.fixture
def endpoint(rig: Any) -> Iterator[dict[str, Any]]:
    """The starter model's endpoint, ready; it ends with the test."""
    started = rig.client.post(f"/models/{rig.starter()['model']}/endpoint")
    yield wait_for(rig, started["id"], "ready")
    rig.client.delete(f"/endpoints/{started['id']}")


@pytest.fixture
def client(rig: Any) -> openai.OpenAI:
    """The official client: nothing of it is changed but where it speaks to, and as whom."""
    token = rig.platform.settings.admin_token_path.read_text().strip()
    return openai.OpenAI(base_url=f"{rig.client.url}/v1", api_key=token, max_retries=0)


def wait_for(rig: Any, endpoint_id: str, state: str, timeout_s: float = START_S) -> dict[str, Any]:
    def read() -> dict[str, Any]:
        found: dict[str, Any] = rig.client.get(f"/endpoints/{endpoint_id}")
        return found

    wait_until(lambda: read()["state"] in {state, "failed"}, timeout_s, f"the endpoint is {state}")
    found = read()
    assert found["state"] == state, found["failure"]
    return found


def test_the_official_client_chats_streams_and_completes(
    endpoint: dict[str, Any], client: openai.OpenAI
) -> None:
    name = endpoint["name"]
    assert name in [model.id for model in client.models.list()]
    asked: dict[str, Any] = {"model": name, "messages": QUESTION, "max_tokens": 8, "temperature": 0}

    whole = client.chat.completions.create(**asked, logprobs=True, top_logprobs=2)
    stream = client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True})
    *pieces, last = stream
    two = client.completions.create(model=name, prompt="1+1=", max_tokens=4, n=2, seed=3)

    said = whole.choices[0]
    assert said.logprobs is not None
    assert said.logprobs.content is not None
    assert len(said.logprobs.content[0].top_logprobs) == 2
    assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == said.message.content
    assert last.usage is not None
    assert last.usage.completion_tokens <= 8
    assert len(two.choices) == 2
    form: Any = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"enum": ["yes", "no"]}}}
    shaped = client.chat.completions.create(**asked, response_format=form)
    assert shaped.choices[0].message.content in {'"yes"', '"no"'}


def test_the_official_client_reads_our_errors(endpoint: dict[str, Any], client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError, match="Model 'nobody' not found"):
        client.chat.completions.create(model="nobody", messages=QUESTION)
    with pytest.raises(openai.BadRequestError, match="chat_template"):
        client.chat.completions.create(
            model=endpoint["name"], messages=QUESTION, extra_body={"chat_template": "{{ 1 }}"}
        )


def test_an_engine_that_is_killed_ends_the_answer_and_the_endpoint(
    rig: Any, endpoint: dict[str, Any], client: openai.OpenAI
) -> None:
    stream = client.chat.completions.create(
        model=endpoint["name"],
        messages=QUESTION,
        max_tokens=3000,
        stream=True,
        extra_body={"ignore_eos": True},
    )
    next(iter(stream))
    killed_at = time.monotonic()
    for process in list_engines(endpoint["run_id"]):
        process.kill()

    with pytest.raises(openai.APIError):
        for _ in stream:
            pass

    wait_until(
        lambda: rig.client.get(f"/endpoints/{endpoint['id']}")["state"] == "failed",
        SETTLED_S,
        "it is settled",
    )
    assert time.monotonic() - killed_at < SETTLED_S
    assert rig.client.get(f"/endpoints/{endpoint['id']}")["failure"]["cause"] == "engine_died"


def test_an_endpoint_that_nobody_uses_stops(rig: Any) -> None:
    started = rig.client.post(
        f"/models/{rig.starter()['model']}/endpoint", {"idle_timeout_s": 10, "max_model_len": 128}
    )
    ready = wait_for(rig, started["id"], "ready")
    assert ready["max_model_len"] == 128

    stopped = wait_for(rig, started["id"], "stopped", timeout_s=90)

    assert stopped["stopped_by"] == "idle"
    assert not list_engines(stopped["run_id"])


def list_engines(run_id: str) -> list[psutil.Process]:
    """Processes of vLLM that compute for an endpoint, by the folder that they work in."""
    found = []
    for process in psutil.process_iter(["name", "cmdline"]):
        try:
            is_engine = any("EngineCore" in part for part in process.info["cmdline"] or [])
            if is_engine and run_id in process.cwd():
                found.append(process)
        except psutil.Error:
            continue
    return found
