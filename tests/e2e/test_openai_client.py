"""The official OpenAI client on a model that knows its answers: its own examples, and what they leave out.

Its examples run as they were published: nothing but the address and the key is ours.
"""

import asyncio
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from trellis_cli.services.platform import REPOSITORY_ROOT
from trellis_testing.known_answers import CHATS, CITIES, SOLUTION, write_knowing_model
from trellis_testing.openai_examples import (
    VERSION,
    NoAnswer,
    fetch_examples,
    list_examples,
    read_locked_version,
)
from trellis_testing.waiting import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
START_S = 600.0
EXAMPLE_S = 240.0
_TEST, _SOLVED = CHATS["Say this is a test"], f"answer:  {SOLUTION['final_answer']}"

#: Examples that run to their end: the model that they ask, and what they print of its answer.
RUN = {
    "demo.py": ("gpt-5.5", f"{_TEST}\n----- streaming request -----\nUse os.listdir().\n"),
    "async_demo.py": ("gpt-5.5", f"{_TEST}\n"),
    "streaming.py": ("gpt-5.5", '"finish_reason": "stop"'),
    "x509_workload_identity.py": ("gpt-5.5", f"{CHATS['Hello!']}\n"),
    "x509_workload_identity_async.py": ("gpt-5.5", f"{CHATS['Hello!']}\n"),
    "httpx2_client.py": ("gpt-5.2", f"{_TEST}\n"),
    "parsing.py": ("gpt-4o-2024-08-06", _SOLVED),
    "parsing_stream.py": ("gpt-4o-2024-08-06", f"answer: {SOLUTION['final_answer']}\n"),
    "parsing_tools.py": ("gpt-4o-2024-08-06", "Table.orders"),
    "parsing_tools_stream.py": ("gpt-4o-2024-08-06", "parsed_arguments=GetWeather("),
    "responses/streaming.py": ("gpt-4o-2024-08-06", f"final_answer='{SOLUTION['final_answer']}'"),
    "responses/streaming_tools.py": ("gpt-4o-2024-08-06", "ResponseFunctionCallArgumentsDoneEvent("),
    "responses/structured_outputs.py": ("gpt-4o-2024-08-06", _SOLVED),
    "responses/structured_outputs_tools.py": ("gpt-4o-2024-08-06", "table name: Table.orders"),
}
#: Examples of what is not offered, and what they are told.
REFUSED = {
    "audio.py": "POST /v1/audio/speech is not supported",
    "image_stream.py": "POST /v1/images/generations is not supported",
    "picture.py": "POST /v1/images/generations is not supported",
    "responses_input_tokens.py": "POST /v1/responses/input_tokens is not supported",
    "uploads.py": "POST /v1/uploads is not supported",
    "video.py": "POST /v1/videos is not supported",
    "responses/background.py": "background: This field is not supported.",
    "responses/background_async.py": "background: This field is not supported.",
    "responses/background_streaming.py": "background: This field is not supported.",
    "responses/background_streaming_async.py": "background: This field is not supported.",
    "responses/multi_agent_streaming.py": "Unknown query parameter 'beta'",
    "responses/multi_agent_websocket.py": "HTTP 404",
    "responses/websocket.py": "HTTP 404",
    "responses_websocket.py": "HTTP 404",
}
#: Examples that cannot ask this server, or not by themselves: why.
NOT_RUN = {
    "azure.py": "asks Azure, at an address of its own",
    "azure_ad.py": "asks Azure, at an address of its own",
    "bedrock.py": "asks Bedrock, at an address of its own",
    "bedrock_runtime.py": "asks Bedrock, at an address of its own",
    "module_client.py": "names an address and a key of its own",
    "mtls_httpx.py": "needs a client's certificate",
    "mtls_httpx2.py": "needs a client's certificate",
    "mtls_httpx2_async.py": "needs a client's certificate",
    "mtls_httpx_async.py": "needs a client's certificate",
    "speech_to_text.py": "needs a microphone",
    "text_to_speech.py": "needs a loudspeaker",
    "browser/": "needs pages in a browser",
    "browser-use-demo/": "needs pages in a browser",
    "computer-desktop/": "needs a virtual machine",
    "live/": "needs recorded speech",
    "realtime/": "needs a keyboard or a microphone",
}


@pytest.fixture(scope="module")
def examples(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the examples; skipped where no index gives them."""
    try:
        return fetch_examples(tmp_path_factory.mktemp("openai"))
    except NoAnswer as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def knowing(running_platform: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the model, where the platform may read it."""
    made = tmp_path_factory.mktemp("knowing")
    write_knowing_model(made)
    folder: Path = running_platform.platform.settings.data_root / "knowing"
    shutil.copytree(made / "model", folder)
    return folder


@pytest.fixture(scope="module")
def served(request: pytest.FixtureRequest, running_platform: Any, knowing: Path) -> Iterator[str]:
    """The model under one of the names that the examples ask for, loaded; it ends with its tests."""
    name, client = request.param, running_platform.client
    model = client.post("/models", {"name": name, "source": {"kind": "local", "path": knowing.name}})
    started = client.post(f"/models/{model['id']}/endpoint")

    def wait_for(state: str) -> None:
        def read() -> dict[str, Any]:
            return dict(client.get(f"/endpoints/{started['id']}"))

        wait_until(lambda: read()["state"] in {state, "failed"}, START_S, f"{name} is {state}")
        assert read()["state"] == state, read()["failure"]

    wait_for("ready")
    yield name
    client.delete(f"/endpoints/{started['id']}")
    wait_for("stopped")


@pytest.fixture
def environment(running_platform: Any) -> dict[str, str]:
    token = running_platform.platform.settings.admin_token_path.read_text().strip()
    here = {"OPENAI_BASE_URL": f"{running_platform.client.url}/v1", "OPENAI_API_KEY": token}
    theirs = {name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")}
    return {**theirs, **here}


@pytest.fixture
def client(environment: dict[str, str]) -> openai.OpenAI:
    """The official client: nothing of it is changed but where it speaks to, and as whom."""
    return openai.OpenAI(
        base_url=environment["OPENAI_BASE_URL"], api_key=environment["OPENAI_API_KEY"], max_retries=0
    )


def run_example(
    folder: Path, name: str, environment: dict[str, str], *arguments: str
) -> "subprocess.CompletedProcess[str]":
    """Run an example as published, in a folder of its own."""
    return subprocess.run(
        [sys.executable, folder / name, *arguments],
        cwd=folder,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=EXAMPLE_S,
        check=False,
    )


def test_every_example_of_the_locked_version_is_accounted_for(examples: Path) -> None:
    locks = (REPOSITORY_ROOT / "requirements").glob("*.lock")
    assert {read_locked_version(lock) for lock in locks} == {VERSION}
    assert {*RUN, *REFUSED, *NOT_RUN} == list_examples(examples)


@pytest.mark.parametrize(
    ("served", "name"),
    [(model, name) for name, (model, _) in RUN.items()],
    indirect=["served"],
    scope="module",
)
def test_an_example_runs_as_published(
    served: str, name: str, examples: Path, environment: dict[str, str]
) -> None:
    ended = run_example(examples, name, environment)

    assert ended.returncode == 0, ended.stderr[-2000:]
    assert RUN[name][1] in ended.stdout


@pytest.mark.parametrize("name", REFUSED)
def test_an_example_of_what_is_not_offered_is_told_so(
    running_platform: Any, name: str, examples: Path, environment: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "file.txt").write_text("text")
    arguments = [str(tmp_path / "file.txt")] if name == "uploads.py" else []

    ended = run_example(examples, name, environment, *arguments)

    # One example prints errors itself, and ends well.
    assert (ended.returncode == 0) is (name == "image_stream.py")
    assert REFUSED[name] in ended.stdout + ended.stderr


@pytest.mark.parametrize("served", ["gpt-4o-2024-08-06"], indirect=True, scope="module")
class TestBesidesTheExamples:
    """What the examples leave out."""

    def test_a_response_is_the_same_whole_and_streamed(self, served: str, client: openai.OpenAI) -> None:
        asked: dict[str, Any] = {"model": served, "input": "Count from 1 to 5."}

        whole = client.responses.create(**asked)
        *_, last = events = list(client.responses.create(**asked, stream=True))
        cut = client.responses.create(**asked, max_output_tokens=3)

        assert whole.output_text == CHATS["Count from 1 to 5."]
        assert whole.status == "completed"
        pieces = [event.delta for event in events if event.type == "response.output_text.delta"]
        assert len(pieces) > 1
        assert "".join(pieces) == whole.output_text
        assert [event.sequence_number for event in events] == list(range(len(events)))
        assert last.type == "response.completed"
        assert last.response.output_text == whole.output_text
        assert whole.usage is not None
        assert last.response.usage is not None
        assert last.response.usage.output_tokens == whole.usage.output_tokens
        assert cut.status == "incomplete"
        assert cut.incomplete_details is not None
        assert cut.incomplete_details.reason == "max_output_tokens"
        assert whole.output_text.startswith(cut.output_text)

    def test_an_answer_ends_before_a_stop_text(self, served: str, client: openai.OpenAI) -> None:
        asked: dict[str, Any] = {
            "model": served,
            "messages": [{"role": "user", "content": "Say this is a test"}],
        }

        whole = client.chat.completions.create(**asked, stop=["nothing", " test"])
        stream = client.chat.completions.create(**asked, stop=" test", stream=True)
        pieces = [piece for piece in stream if piece.choices]

        assert whole.choices[0].message.content == "This is a"
        assert whole.choices[0].finish_reason == "stop"
        assert "".join(piece.choices[0].delta.content or "" for piece in pieces) == "This is a"
        assert pieces[-1].choices[0].finish_reason == "stop"

    def test_the_asynchronous_client_asks_for_several_answers_at_once(
        self, served: str, client: openai.OpenAI
    ) -> None:
        questions = ["Say this is a test", "Hello!", "Count from 1 to 5."]

        async def ask(client: openai.AsyncOpenAI, question: str) -> str:
            stream = await client.chat.completions.create(
                model=served, messages=[{"role": "user", "content": question}], stream=True
            )
            return "".join([piece.choices[0].delta.content or "" async for piece in stream])

        async def ask_all() -> list[str]:
            async with openai.AsyncOpenAI(
                base_url=client.base_url, api_key=client.api_key, max_retries=0
            ) as asynchronous:
                return await asyncio.gather(*(ask(asynchronous, question) for question in questions))

        assert asyncio.run(ask_all()) == [CHATS[question] for question in questions]

    def test_a_tool_is_called_where_the_choice_forces_it(self, served: str, client: openai.OpenAI) -> None:
        parameters = {
            "type": "object",
            "properties": {"city": {"enum": ["Paris", "Rome"]}, "days": {"type": "integer", "enum": [1, 2]}},
            "required": ["city", "days"],
            "additionalProperties": False,
        }
        function: dict[str, Any] = {"name": "get_weather", "parameters": parameters}
        tool: Any = {"type": "function", "function": function}
        other: Any = {"type": "function", "function": {"name": "get_time", "parameters": parameters}}
        choice: Any = {"type": "function", "function": {"name": "get_weather"}}
        # A question whose answer it knows: without the choice it would give that.
        messages: list[Any] = [{"role": "user", "content": "Hello!"}]
        asked: dict[str, Any] = {"model": served, "messages": messages, "tools": [other, tool]}

        free = client.chat.completions.create(**{**asked, "tools": None, "messages": messages})
        named = client.chat.completions.create(**asked, tool_choice=choice)
        required = client.chat.completions.create(**asked, tool_choice="required", max_tokens=200)
        stream = client.chat.completions.create(**asked, tool_choice=choice, stream=True)
        response = client.responses.create(
            model=served,
            input="Hello!",
            tools=[{"type": "function", **function, "strict": True}],
            tool_choice={"type": "function", "name": "get_weather"},
        )

        assert free.choices[0].message.tool_calls is None
        (call,) = named.choices[0].message.tool_calls or []
        assert call.type == "function"
        assert call.function.name == "get_weather"
        self._check_arguments(call.function.arguments)
        first, *_ = required.choices[0].message.tool_calls or []
        assert first.type == "function"
        assert first.function.name in {"get_weather", "get_time"}
        deltas = [
            delta for piece in stream if piece.choices for delta in piece.choices[0].delta.tool_calls or []
        ]
        assert [delta.function.name for delta in deltas if delta.function and delta.function.name] == [
            "get_weather"
        ]
        self._check_arguments(
            "".join(delta.function.arguments or "" for delta in deltas if delta.function is not None)
        )
        (item,) = (item for item in response.output if item.type == "function_call")
        assert item.name == "get_weather"
        self._check_arguments(item.arguments)

    def test_a_result_goes_back_to_the_model(self, served: str, client: openai.OpenAI) -> None:
        """Both calls, their results, and an answer."""
        tool: Any = {
            "type": "function",
            "function": {"name": "get_weather", "parameters": {"type": "object"}},
        }
        asked: list[Any] = [{"role": "user", "content": "What's the weather like in SF and New York?"}]
        first = client.chat.completions.create(model=served, messages=asked, tools=[tool])
        said = first.choices[0].message
        calls = said.tool_calls or []
        arguments = [json.loads(call.function.arguments) for call in calls if call.type == "function"]
        assert arguments == CITIES
        assert first.choices[0].finish_reason == "tool_calls"

        results: list[Any] = [{"role": "tool", "tool_call_id": call.id, "content": "sunny"} for call in calls]
        second = client.chat.completions.create(
            model=served,
            messages=[*asked, said, *results],
            tools=[tool],
            max_tokens=8,  # type: ignore[list-item]
        )
        assert second.usage is not None
        assert first.usage is not None
        assert second.usage.prompt_tokens > first.usage.prompt_tokens

    @staticmethod
    def _check_arguments(text: str) -> None:
        arguments = json.loads(text)
        assert arguments["city"] in {"Paris", "Rome"}
        assert arguments["days"] in {1, 2}
