"""Episodes token by token: what was sampled counts, what was shown does not."""

import asyncio
from typing import Any

import pytest
from trellis_contracts.agents import ToolCall
from trellis_testing.episodes import ScriptedServer, loop_arguments, make_tool_tokenizer
from trellis_train.agents.episode.transcript import PromptTooLong, Transcript
from trellis_train.rollout.synchronous_executor import Inline
from verl.experimental.agent_loop.agent_loop import AgentLoopBase

TOOLS = [{"type": "function", "function": {"name": "look", "description": "Look.", "parameters": {}}}]
SYSTEM, QUESTION = "You look things up.", "Where is it?"
PROMPT = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": QUESTION}]
OBSERVATION, REMINDER = '{"found": "é — under the bed"}', "Last turn."
PARAMS: dict[str, Any] = {"temperature": 1.0}


class Loop(AgentLoopBase):
    """verl's helpers, and nothing that runs."""

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> Any:
        raise NotImplementedError


def make(script: list[str], **lengths: int) -> tuple[Transcript, ScriptedServer]:
    tokenizer = make_tool_tokenizer()
    server = ScriptedServer(tokenizer, script)
    loop = Loop(**loop_arguments(server, tokenizer, **lengths))
    loop.loop = Inline()  # no event loop runs yet
    return Transcript(loop, tools=TOOLS), server


async def two_turns(transcript: Transcript) -> None:
    await transcript.begin(PROMPT)
    await transcript.sample("r", PARAMS)
    shown = [{"role": "tool", "content": OBSERVATION}, {"role": "user", "content": REMINDER}]
    assert await transcript.show(shown, duration_s=0.5)
    await transcript.sample("r", PARAMS)


def test_the_mask_is_one_exactly_on_what_was_sampled_and_log_probabilities_align() -> None:
    # A4
    transcript, server = make(["I look.", "It is here."])

    asyncio.run(two_turns(transcript))
    output = transcript.to_output(reward=1.0, extra_fields={})

    sampled = [i for ids in server.sampled for i in ids]
    trained = [i for i, bit in zip(output.response_ids, output.response_mask, strict=True) if bit]
    assert trained == sampled
    expected = [-0.001 * (place + 1) for ids in server.sampled for place in range(len(ids))]
    at_ones = [v for v, bit in zip(output.response_logprobs, output.response_mask, strict=True) if bit]
    at_zeros = [v for v, bit in zip(output.response_logprobs, output.response_mask, strict=True) if not bit]
    assert at_ones == expected
    assert set(at_zeros) == {0.0}


def test_decoded_text_of_mask_zero_holds_every_observation() -> None:
    # A4
    transcript, _ = make(["I look.", "It is here."])

    asyncio.run(two_turns(transcript))
    output = transcript.to_output(reward=1.0, extra_fields={})

    shown = [i for i, bit in zip(output.response_ids, output.response_mask, strict=True) if not bit]
    text = make_tool_tokenizer().decode(shown)
    assert OBSERVATION in text
    assert REMINDER in text
    assert "It is here" not in text


def test_the_second_turn_is_sampled_after_exactly_the_tokens_that_are_trained_on() -> None:
    transcript, server = make(["I look.", "It is here."])

    asyncio.run(two_turns(transcript))
    output = transcript.to_output(reward=1.0, extra_fields={})

    whole = output.prompt_ids + output.response_ids
    assert whole == server.prompts[1] + server.sampled[1]
    rendered = make_tool_tokenizer().apply_chat_template(
        transcript.messages, tools=TOOLS, tokenize=False, add_generation_prompt=False
    )
    assert make_tool_tokenizer().decode(whole) == rendered.rstrip("\n")


def test_turns_tell_of_roles_texts_tokens_and_calls() -> None:
    transcript, server = make(["I look.", "It is here."])
    call = ToolCall(name="look", result=OBSERVATION)

    async def run() -> None:
        await transcript.begin(PROMPT)
        await transcript.sample("r", PARAMS)
        transcript.note_calls([call])
        await transcript.show([{"role": "tool", "content": OBSERVATION}], duration_s=0.5)
        await transcript.sample("r", PARAMS)

    asyncio.run(run())
    trajectory = transcript.trajectory("answered")

    assert [turn.role for turn in trajectory.turns] == ["system", "user", "assistant", "tool", "assistant"]
    assert [turn.text for turn in trajectory.turns] == [
        SYSTEM,
        QUESTION,
        "I look.",
        OBSERVATION,
        "It is here.",
    ]
    assert [turn.is_trained for turn in trajectory.turns] == [False, False, True, False, True]
    assert trajectory.turns[2].calls == [call]
    assert trajectory.turns[2].tokens == len(server.sampled[0])
    assert trajectory.turns[3].duration_s == 0.5
    everything = len(transcript.prompt_ids) + len(transcript.response_ids)
    assert sum(turn.tokens for turn in trajectory.turns) == everything


def test_every_token_counts_where_the_whole_rollout_is_trained_on() -> None:
    transcript, _ = make(["I look.", "It is here."])

    asyncio.run(two_turns(transcript))
    output = transcript.to_output(reward=1.0, extra_fields={}, is_all_trained=True)

    assert output.response_mask == [1] * len(output.response_ids)


def test_what_leaves_no_room_for_a_turn_is_not_shown() -> None:
    transcript, _ = make(["I look."], response_length=40)

    async def run() -> bool:
        await transcript.begin(PROMPT)
        await transcript.sample("r", PARAMS)
        return await transcript.show([{"role": "tool", "content": "x" * 40}])

    assert asyncio.run(run()) is False
    assert transcript.response_ids == transcript.response_ids[: len("I look.") + 1]
    assert [span.role for span in transcript.spans] == ["system", "user", "assistant"]


def test_no_turn_is_longer_than_the_room_that_is_left() -> None:
    transcript, server = make(["a" * 100], response_length=10)

    async def run() -> str:
        await transcript.begin(PROMPT)
        return await transcript.sample("r", PARAMS)

    assert asyncio.run(run()) == "a" * 10
    assert server.params[0]["max_tokens"] == 10
    assert transcript.room == 0


def test_a_prompt_that_does_not_fit_is_told_of_instead_of_cut_silently() -> None:
    transcript, _ = make([], prompt_length=20)

    with pytest.raises(PromptTooLong, match="the maximum is 20"):
        asyncio.run(transcript.begin(PROMPT))

    output = transcript.to_output(reward=-1.0, extra_fields={})
    assert (len(output.prompt_ids), output.response_mask) == (20, [0])


def test_a_trajectory_is_shortened_to_its_bound() -> None:
    transcript, _ = make(["y" * 3000], response_length=4000)

    async def run() -> None:
        await transcript.begin(PROMPT)
        await transcript.sample("r", PARAMS)
        transcript.note_calls([ToolCall(name="look", arguments={"a": "z" * 3000}, result="r" * 3000)])

    asyncio.run(run())
    short = transcript.trajectory("turns", most_characters=2000)

    assert short.is_shortened
    assert len(short.model_dump_json()) < 3000
    assert short.turns[0].text == SYSTEM
    assert not transcript.trajectory("turns", most_characters=20_000).is_shortened
