"""What agent frameworks send to ``model.client``, and that what comes of it is recorded."""

import asyncio
import runpy
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts import workflows
from trellis_contracts.workflows import ModelError
from trellis_testing.episodes import ScriptedServer, loop_arguments, make_tool_tokenizer
from trellis_train.agents.tune.model import RecordingChatModel
from trellis_train.rollout.synchronous_executor import Inline
from verl.experimental.agent_loop.agent_loop import AgentLoopBase

EXAMPLES = Path(__file__).parents[4] / "sdk" / "examples"
TOOL = {
    "type": "function",
    "function": {
        "name": "look",
        "description": "Look.",
        "parameters": {"type": "object", "properties": {"where": {"type": "string"}}},
    },
}
CALL = '<tool_call>{"name": "look", "arguments": {"where": "there"}}</tool_call>'
ASKED = [{"role": "user", "content": "Where?"}]


class Loop(AgentLoopBase):
    """verl's helpers, and nothing that runs."""

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> Any:
        raise NotImplementedError


class NotGiven:
    """As ``openai`` stands in for what was not given."""


def run(
    conversation: Callable[[Any], Awaitable[Any]], script: Any = ("one",), template: str | None = None
) -> Any:
    tokenizer = make_tool_tokenizer()
    tokenizer.chat_template = template or tokenizer.chat_template
    server = ScriptedServer(tokenizer, script)
    loop = Loop(**loop_arguments(server, tokenizer, prompt_length=4000, response_length=4000))
    loop.loop = Inline()
    model = RecordingChatModel(loop, {"temperature": 1.0})
    return model, server, asyncio.run(conversation(model))


def shown(server: Any, call: int = 0) -> str:
    return str(make_tool_tokenizer().decode(server.prompts[call]))


def test_what_has_no_effect_here_is_taken_and_left() -> None:
    async def asks(model: Any) -> Any:
        client = model.client.with_options(timeout=3)
        assert str(client.base_url).startswith("http")
        return await client.chat.completions.create(
            model="m", messages=ASKED, tools=NotGiven(), temperature=NotGiven(), extra_headers={"a": "b"},
            extra_query=None, extra_body=None, timeout=30, store=False, metadata={"a": "b"}, user="me",
        )  # fmt: skip

    _, _, answer = run(asks)

    assert answer.choices[0].message.content == "one"
    assert answer.model == "m"
    assert answer.model_dump()["usage"]["total_tokens"] == answer.usage.total_tokens > 0


def test_a_reply_in_time_or_none() -> None:
    async def asks(model: Any) -> None:
        async def never(*_: Any, **__: Any) -> Any:
            await asyncio.sleep(60)

        model._ask = never
        with pytest.raises(TimeoutError):
            await model.client.chat.completions.create(messages=ASKED, timeout=0.01)

    run(asks)


def test_a_stream_gives_text_calls_end_and_usage() -> None:
    async def asks(model: Any) -> Any:
        stream = await model.client.chat.completions.create(
            messages=ASKED, tools=[TOOL], stream=True, stream_options={"include_usage": True}
        )
        async with stream:
            return [chunk async for chunk in stream]

    _, _, chunks = run(asks, script=[f"I look. {CALL}"])

    assert chunks[0].choices[0].delta.content.strip() == "I look."
    (call,) = chunks[1].choices[0].delta.tool_calls
    assert (call.index, call.function.name) == (0, "look")
    assert chunks[2].choices[0].finish_reason == "tool_calls"
    assert chunks[3].usage.completion_tokens > 0


def test_one_call_at_a_time_where_that_is_asked_for_and_the_conversation_goes_on() -> None:
    async def asks(model: Any) -> Any:
        create = model.client.chat.completions.create
        first = await create(messages=ASKED, tools=[TOOL], parallel_tool_calls=False)
        message = first.choices[0].message
        result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "here"}
        await create(messages=[*ASKED, message, result], tools=[TOOL], parallel_tool_calls=False)
        return first

    model, _, first = run(asks, script=[CALL + CALL, "done"])

    assert len(first.choices[0].message.tool_calls) == 1
    assert len(model.branches) == 1


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"tool_choice": "required"}, "Call one of the tools."),
        ({"tool_choice": {"type": "function", "function": {"name": "look"}}}, "Call the tool look."),
        ({"response_format": {"type": "json_object"}}, "Answer with a JSON object alone."),
        (
            {
                "response_format": {
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": {"type": "array"}},
                }
            },
            'follows this schema: {"type": "array"}',
        ),
    ],
)
def test_what_a_reply_should_be_is_said_to_the_model_and_kept_out_of_the_history(
    options: dict[str, Any], told: str
) -> None:
    async def asks(model: Any) -> None:
        create = model.client.chat.completions.create
        first = await create(messages=ASKED, tools=[TOOL], **options)
        more = {"role": "user", "content": "And?"}
        await create(messages=[*ASKED, first.choices[0].message, more], tools=[TOOL])

    model, server, _ = run(asks, script=["one", "two"])

    assert told in shown(server)
    assert shown(server, 1).count(told) == 1
    assert len(model.branches) == 1


@pytest.mark.parametrize(
    ("choice", "told"),
    [
        ("required", "Call one of the tools."),
        ({"type": "function", "function": {"name": "look"}}, "Call the tool look."),
    ],
)
def test_after_a_tools_result_the_model_is_still_told_to_call_and_the_tokens_go_on(
    choice: Any, told: str
) -> None:
    async def asks(model: Any) -> None:
        create = model.client.chat.completions.create
        messages: list[Any] = list(ASKED)
        for number in range(3):
            answer = await create(messages=messages, tools=[TOOL], tool_choice=choice)
            message = answer.choices[0].message
            result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": f"place {number}"}
            messages += [message, result]
        await create(messages=messages, tools=[TOOL])

    model, server, _ = run(asks, script=[CALL, CALL, CALL, "done"])

    assert [shown(server, call).count(told) for call in range(4)] == [1, 2, 3, 3]
    assert "place 1" in shown(server, 2).split(told)[-2]
    (branch,) = model.branches
    for prompt, sampled, later in zip(server.prompts, server.sampled, server.prompts[1:], strict=False):
        assert later[: len(prompt) + len(sampled)] == prompt + sampled
    assert branch.ids == server.prompts[-1] + server.sampled[-1]
    assert sum(branch.mask) == sum(map(len, server.sampled))
    assert model.missing_calls == 0


OTHER = {"type": "function", "function": {"name": "jump", "description": "Jump.", "parameters": {}}}


@pytest.mark.parametrize(
    ("choice", "reply", "missing"),
    [
        ("required", "there", 1),
        ("required", CALL, 0),
        ({"type": "function", "function": {"name": "jump"}}, CALL, 1),
        ({"type": "function", "function": {"name": "look"}}, CALL, 0),
        ("auto", "there", 0),
        (None, "there", 0),
    ],
)
def test_a_reply_without_the_call_that_was_asked_for_is_counted_and_not_hidden(
    choice: Any, reply: str, missing: int
) -> None:
    async def asks(model: Any) -> Any:
        chosen = {} if choice is None else {"tool_choice": choice}
        return await model.client.chat.completions.create(messages=ASKED, tools=[TOOL, OTHER], **chosen)

    model, server, answer = run(asks, script=[reply])

    assert model.missing_calls == missing
    assert len(server.prompts) == 1
    assert bool(answer.choices[0].message.tool_calls) == (reply == CALL)


def test_a_tool_that_is_not_offered_cannot_be_chosen() -> None:
    async def asks(model: Any) -> None:
        with pytest.raises(ValueError, match="'jump', which is not among the tools"):
            await model(ASKED, [TOOL], tool_choice={"type": "function", "function": {"name": "jump"}})
        with pytest.raises(ValueError, match="one of auto, none, required"):
            await model(ASKED, [TOOL], tool_choice="maybe")

    run(asks)


def test_code_that_does_not_await_runs_in_a_thread() -> None:
    def work(client: Any) -> str:
        return str(client.chat.completions.create(messages=ASKED).choices[0].message.content)

    async def asks(model: Any) -> list[str]:
        client = model.sync_client
        with pytest.raises(RuntimeError, match=r"asyncio\.to_thread"):
            work(client)
        return [await asyncio.to_thread(work, client) for _ in range(2)]

    model, _, said = run(asks, script=["one"])

    assert said == ["one", "one"]
    assert len(model.branches) == 2


def test_tools_for_a_model_whose_template_shows_none_are_an_error() -> None:
    plain = "{% for message in messages %}{{ message['content'] }}{% endfor %}"

    async def asks(model: Any) -> None:
        with pytest.raises(ModelError, match="does not support tools"):
            await model(ASKED, [TOOL])

    run(asks, template=plain)


@pytest.mark.parametrize(("example", "package"), [("openai_agents", "agents"), ("langgraph", "langgraph")])
def test_the_example_of_a_framework_is_played_and_recorded(
    example: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip(package)
    monkeypatch.setitem(sys.modules, "trellis", workflows)
    workflow = runpy.run_path(str(EXAMPLES / example / "workflow.py"))["workflow"]
    call = '<tool_call>{"name": "add", "arguments": {"a": 2, "b": 3}}</tool_call>'

    async def plays(model: Any) -> float:
        return float(await workflow({"question": "What is 2 + 3?", "answer": "5"}, model))

    model, server, reward = run(plays, script=[call, "It is 5."])

    assert reward == 1.0
    assert len(model.branches) == 1
    assert "<tool_response>" in shown(server, 1)
