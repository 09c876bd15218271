"""The model that a workflow calls records its conversations token by token (C4, C5)."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from trellis_contracts.workflows import ContextExceeded, ModelError
from trellis_testing.episodes import ScriptedServer, loop_arguments, make_tool_tokenizer
from trellis_train.agents.tune.model import MAX_BRANCHES, RecordingChatModel
from trellis_train.rollout.synchronous_executor import Inline
from verl.experimental.agent_loop.agent_loop import AgentLoopBase

TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {}}}
CALL = 'I look. <tool_call>{"name": "look", "arguments": {"where": "é"}}</tool_call>'
Conversation = Callable[[RecordingChatModel], Awaitable[Any]]


class Loop(AgentLoopBase):
    """verl's helpers, and nothing that runs."""

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> Any:
        raise NotImplementedError


def user(text: str) -> dict[str, Any]:
    return {"role": "user", "content": text}


def run(
    conversation: Conversation, script: Any = ("one", "two", "three"), params: Any = None, **lengths: int
) -> tuple[RecordingChatModel, ScriptedServer, Any]:
    tokenizer = make_tool_tokenizer()
    server = ScriptedServer(tokenizer, script)
    loop = Loop(**loop_arguments(server, tokenizer, **lengths))
    loop.loop = Inline()
    model = RecordingChatModel(loop, params or {"temperature": 1.0})
    return model, server, asyncio.run(conversation(model))  # type: ignore[arg-type]


def test_a_linear_conversation_is_one_branch_whose_ids_are_the_servers() -> None:
    async def linear(model: RecordingChatModel) -> None:
        messages = [user("hello")]
        for said in ("and?", "so?"):
            reply = await model(messages)
            messages += [reply.message, user(said)]
        await model(messages)

    model, server, _ = run(linear)

    (branch,) = model.trained_branches
    assert branch.ids == server.prompts[-1] + server.sampled[-1]
    start = len(server.prompts[0])
    trained = [token for token, bit in zip(branch.ids[start:], branch.mask, strict=True) if bit]
    assert trained == [token for tokens in server.sampled for token in tokens]
    assert branch.logprobs is not None
    at_ones = [value for value, bit in zip(branch.logprobs, branch.mask, strict=True) if bit]
    assert at_ones == [-0.001 * (place + 1) for tokens in server.sampled for place in range(len(tokens))]


def test_an_edited_history_begins_a_second_branch() -> None:
    async def edits(model: RecordingChatModel) -> None:
        first = await model([user("hello")])
        await model([user("goodbye"), first.message, user("and?")])

    model, server, _ = run(edits)

    assert [branch.ids for branch in model.trained_branches] == [
        prompt + sampled for prompt, sampled in zip(server.prompts, server.sampled, strict=True)
    ]


def test_a_call_goes_on_from_the_longest_branch_that_fits() -> None:
    async def forks(model: RecordingChatModel) -> None:
        first = await model([user("a")])
        longer = [user("a"), first.message, user("b")]
        await model(longer)
        # The first branch went on to "b"; from its beginning there is nothing to extend any more.
        await model([user("a"), first.message, user("c")])
        second = await model([user("a")])
        await model([user("a"), second.message, user("d")])

    model, _, _ = run(forks)

    assert sorted(len(branch.known) for branch in model.branches) == [4, 4, 4]


def test_replies_in_any_form_are_recognised_as_what_was_sampled() -> None:
    async def as_openai(model: RecordingChatModel) -> None:
        create = model.client.chat.completions.create
        first = await create(model="x", messages=[user("hello")], tools=[TOOL])
        message = first.choices[0].message
        assert first.choices[0].finish_reason == "tool_calls"
        assert message.tool_calls[0].function.arguments == '{"where": "\\u00e9"}'
        result = {"role": "tool", "tool_call_id": message.tool_calls[0].id, "content": "nothing"}
        await create(model="x", messages=[user("hello"), message.model_dump(), result], tools=[TOOL])

    async def as_sampled(model: RecordingChatModel) -> None:
        first = await model([user("hello")], [TOOL])
        raw = {"role": "assistant", "content": first.raw}
        await model([user("hello"), raw, {"role": "tool", "content": "nothing"}], [TOOL])

    for conversation in (as_openai, as_sampled):
        model, server, _ = run(conversation, [CALL, "done"])
        (branch,) = model.trained_branches
        assert branch.ids == server.prompts[-1] + server.sampled[-1]


def test_other_tools_are_another_prompt_and_another_branch() -> None:
    async def drops_tools(model: RecordingChatModel) -> None:
        first = await model([user("hello")], [TOOL])
        await model([user("hello"), first.message, user("and?")])

    model, _, _ = run(drops_tools)

    assert len(model.trained_branches) == 2


def test_calls_side_by_side_are_branches_of_their_own_with_seeds_of_their_own() -> None:
    async def at_once(model: RecordingChatModel) -> None:
        await asyncio.gather(*(model([user("hello")]) for _ in range(3)))

    model, server, _ = run(at_once, params={"seed": 7})

    assert len(model.trained_branches) == 3
    assert len({params["seed"] for params in server.params}) == 3


def test_at_most_sixteen_branches_are_kept_and_the_last_completed_is_last() -> None:
    async def many(model: RecordingChatModel) -> None:
        for number in range(20):
            await model([user(f"question {number}")])
        await model([user("question 18"), {"role": "assistant", "content": "one"}, user("more")])

    model, _, _ = run(many)

    kept = model.trained_branches
    assert len(kept) == MAX_BRANCHES == 16
    assert kept[-1].messages[-2]["content"] == "more"
    assert kept[0].messages[0]["content"] == "question 4"


@pytest.mark.parametrize(
    "options", [{"n": 2}, {"temperature": 0.1}, {"tool_choice": "required"}, {"extra_body": {"top_k": 1}}]
)
def test_what_a_call_cannot_ask_for_is_refused(options: dict[str, Any]) -> None:
    async def asks(model: RecordingChatModel) -> None:
        with pytest.raises(ValueError, match=next(iter(options))):
            await model.client.chat.completions.create(messages=[user("hello")], **options)

    model, _, _ = run(asks)
    assert model.branches == []


def test_messages_that_do_not_fit_are_refused_and_never_cut() -> None:
    async def too_long(model: RecordingChatModel) -> str:
        with pytest.raises(ContextExceeded):
            await model([user("x" * 200)])
        reply = await model([user("hello")])
        with pytest.raises(ContextExceeded):
            await model([user("hello"), reply.message, user("y" * 200)])
        return reply.text

    model, server, text = run(too_long, prompt_length=100, response_length=60)

    assert text == "one"
    (branch,) = model.trained_branches
    assert branch.ids == server.prompts[0] + server.sampled[0]


def test_a_reply_is_as_long_as_the_call_and_the_room_allow() -> None:
    async def short(model: RecordingChatModel) -> tuple[Any, Any]:
        first = await model([user("hello")], max_tokens=4)
        second = await model([user("other")])
        return first, second

    _, server, (first, second) = run(short, ["a very long reply indeed"], response_length=10)

    assert [len(tokens) for tokens in server.sampled] == [4, 10]
    assert (first.text, first.finish_reason, first.completion_tokens) == ("a ve", "length", 4)
    assert second.finish_reason == "length"


def test_a_branch_in_which_a_call_failed_is_not_continued() -> None:
    async def fails_once(model: RecordingChatModel) -> None:
        first = await model([user("hello")])
        messages = [user("hello"), first.message, user("and?")]
        with pytest.raises(ConnectionError):
            await model(messages)
        await model(messages)

    failures = iter([False, True, False])

    def script(_: Any, turn: int) -> str:
        if next(failures):
            raise ConnectionError("the server is gone")
        return f"reply {turn}"

    model, server, _ = run(fails_once, script)

    first, second = model.trained_branches
    assert second.ids == server.prompts[-1] + server.sampled[-1]
    assert first.messages[-1] == user("and?")


def test_malformed_messages_are_refused() -> None:
    async def asks(model: RecordingChatModel) -> None:
        for messages in ([], ["hello"], [{"content": "no role"}]):
            with pytest.raises(ValueError, match="message"):
                await model(messages)  # type: ignore[arg-type]
        with pytest.raises(ModelError):
            await model([{"role": "assistant", "content": "", "tool_calls": [{"id": "x"}]}, user("y")])

    model, _, _ = run(asks)
    assert model.trained_branches == []
