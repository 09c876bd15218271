"""Chat templates that insist that user and assistant alternate: what follows a result is part of it."""

import asyncio
from typing import Any

import pytest
from trellis_testing.episodes import TOOL_TEMPLATE, ScriptedServer, loop_arguments, make_tool_tokenizer
from trellis_train.agents.episode.alternation import (
    join_after_results,
    joins_results,
    render_users_in_turn,
)
from trellis_train.agents.episode.transcript import Transcript
from trellis_train.agents.tune.model import RecordingChatModel
from trellis_train.rollout.synchronous_executor import Inline
from verl.experimental.agent_loop.agent_loop import AgentLoopBase

#: As Mistral's: results and the turns that call do not count.
STRICT = (
    "{%- set seen = namespace(role='') %}{%- for message in messages %}"
    "{%- if message.role in ('user', 'assistant') and not message.tool_calls %}"
    "{%- if message.role == seen.role %}{{ raise_exception('roles must alternate') }}{% endif %}"
    "{%- set seen.role = message.role %}{%- endif %}{%- endfor -%}"
) + TOOL_TEMPLATE
TOOL = {"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {}}}
CALL = '<tool_call>{"name": "look", "arguments": {}}</tool_call>'
ASKED: dict[str, Any] = {"role": "user", "content": "Where?"}


class Loop(AgentLoopBase):
    """verl's helpers, and nothing that runs."""

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> Any:
        raise NotImplementedError


def make_loop(template: str, *script: str) -> Any:
    tokenizer = make_tool_tokenizer()
    tokenizer.chat_template = template
    loop = Loop(**loop_arguments(ScriptedServer(tokenizer, list(script)), tokenizer))
    loop.loop = Inline()
    render_users_in_turn(loop.continuous_token_builder, tokenizer)
    return loop


@pytest.mark.parametrize(("template", "joins"), [(STRICT, True), (TOOL_TEMPLATE, False), ("", False)])
def test_a_strict_template_is_found_out(template: str, joins: bool) -> None:
    assert joins_results(make_loop(template)) == joins


def test_a_users_word_behind_a_result_is_joined_to_it() -> None:
    result = {"role": "tool", "content": "3", "tool_call_id": "a"}

    joined = join_after_results([ASKED, result, ASKED, {"role": "assistant", "content": "Here."}, ASKED])

    assert joined[1] == {**result, "content": "3\n\nWhere?"}
    assert [each["role"] for each in joined] == ["user", "tool", "assistant", "user"]
    assert result["content"] == "3"


@pytest.mark.parametrize("template", [STRICT, TOOL_TEMPLATE])
def test_the_tokens_of_an_episode_are_those_of_the_whole_conversation(template: str) -> None:
    loop = make_loop(template, "I look.", "Here.", "Yes.")
    transcript = Transcript(loop, tools=[TOOL])

    async def play() -> None:
        await transcript.begin([{"role": "system", "content": "Brief."}, ASKED])
        for shown in ([{"role": "tool", "content": "x"}, {"role": "user", "content": "Last turn."}], [ASKED]):
            await transcript.sample("r", {"temperature": 1.0})
            assert await transcript.show(shown)
        await transcript.sample("r", {"temperature": 1.0})

    asyncio.run(play())

    said = loop.tokenizer.decode(transcript.context_ids)
    assert said.count("Last turn.") == 1
    assert ("x\n\nLast turn.\n</tool_response>" in said) == (template == STRICT)
    talk = [
        {"role": "system", "content": "Brief."}, ASKED, {"role": "assistant", "content": "I look."},
        {"role": "tool", "content": "x\n\nLast turn."}, {"role": "assistant", "content": "Here."},
        ASKED, {"role": "assistant", "content": "Yes."},
    ]  # fmt: skip
    if template == STRICT:
        # Without its check: in a transcript the turn that calls is plain text.
        loop.tokenizer.chat_template = TOOL_TEMPLATE
        whole = loop.tokenizer.apply_chat_template(talk, tools=[TOOL], tokenize=False)
        assert said.rstrip("\n") == whole.rstrip("\n")


def test_a_call_that_is_demanded_after_a_result_is_asked_for_in_the_result() -> None:
    loop = make_loop(STRICT, CALL, CALL, "Here.")
    model = RecordingChatModel(loop, {"temperature": 1.0})

    async def ask() -> Any:
        first = await model([ASKED], tools=[TOOL])
        result = {"role": "tool", "content": "nothing", "tool_call_id": first.tool_calls[0].id}
        second = await model([ASKED, first.message, result], tools=[TOOL], tool_choice="required")
        messages = [ASKED, first.message, result, second.message, {**result, "content": "found"}]
        return await model([*messages, {"role": "user", "content": "So?"}], tools=[TOOL])

    assert asyncio.run(ask()).text == "Here."
    (branch,) = model.trained_branches
    told = loop.tokenizer.decode(branch.ids)
    assert "nothing\n\nCall one of the tools.\n</tool_response>" in told
    assert "found\n\nSo?\n</tool_response>" in told
