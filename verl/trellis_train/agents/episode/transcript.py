"""An episode, token by token: what was sampled, what was shown, and who said it.

Nothing that was sampled is tokenised again: verl's continuous-token helpers append the ids of the model's
turns as they came and render only what stands between them (``AgentLoopBase.ct_*`` of verl 0.9.1).
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import groupby
from typing import Any, cast

from trellis_contracts.agents import Role, ToolCall, Trajectory, Turn
from verl.experimental.agent_loop.agent_loop import AgentLoopMetrics, AgentLoopOutput

from trellis_train.agents.episode.alternation import join_after_results, joins_results
from trellis_train.agents.episode.shortening import shorten

Message = dict[str, Any]


class PromptTooLong(ValueError):
    """The first prompt alone is longer than a run's prompts may be; verl would cut off its beginning."""


@dataclass
class Span:
    """Messages of one role that were appended together; ``[start, end)`` counts tokens of the response.

    Those of the prompt have negative places: the prompt ends where the response starts, at 0.
    """

    role: Role
    text: str
    start: int
    end: int
    duration_s: float | None = None
    calls: list[ToolCall] = field(default_factory=list)
    is_sampled: bool = False


class Transcript:
    """The record of one episode.

    ``loop`` is a verl ``AgentLoopBase``: its tokenizer and its helpers are used. ``max_response`` bounds
    all tokens after the prompt, sampled or shown.
    """

    def __init__(self, loop: Any, *, tools: list[Message] | None = None) -> None:
        self._loop = loop
        self._tools = tools
        self.max_prompt = int(loop.rollout_config.prompt_length)
        self.max_response = int(loop.rollout_config.response_length)
        self.messages: list[Message] = []
        self.prompt_ids: list[int] = []
        self.response_ids: list[int] = []
        #: 1 exactly where a token was sampled from the policy.
        self.mask: list[int] = []
        #: Of the sampled tokens, 0.0 for all others; None where the server gives none.
        self.logprobs: list[float] | None = None
        self.spans: list[Span] = []
        #: Of the server's answers: weight versions of verl's asynchronous trainers and the like.
        self.extra_fields: dict[str, Any] = {}
        self.preempted = -1
        self.began_at = datetime.now(UTC)
        self._began = time.monotonic()

    # -- what happens ----------------------------------------------------------------------

    async def begin(self, messages: Sequence[Mapping[str, Any]]) -> None:
        """Render the prompt. Raises ``PromptTooLong``; the prompt's end is kept for the output."""
        self.messages = self._as_template_takes(messages)
        builder = self._loop.continuous_token_builder
        ids = await self._loop.loop.run_in_executor(
            None, lambda: builder.build_initial_tokens(self.messages, tools=self._tools)
        )
        # The end of it, as verl's own loops keep it: a sample has to fit, even one of no use.
        self.prompt_ids = list(ids)[-self.max_prompt :]
        self._note(self.messages, -len(self.prompt_ids), 0, None, leading=True)
        if len(ids) > self.max_prompt:
            raise PromptTooLong(
                f"the prompt has {len(ids)} tokens including its tools; the maximum is {self.max_prompt}"
                " (max_prompt_length; in a configuration of tune model.max_prompt_tokens)"
            )

    @property
    def room(self) -> int:
        """Tokens that may still be appended."""
        return self.max_response - len(self.response_ids)

    @property
    def context_ids(self) -> list[int]:
        """All tokens so far: what the next turn is sampled after."""
        return self.prompt_ids + self.response_ids

    @property
    def duration_s(self) -> float:
        """Since the episode began."""
        return time.monotonic() - self._began

    async def sample(
        self, request_id: str, sampling_params: Mapping[str, Any], *, most_tokens: int | None = None
    ) -> str:
        """Let the model write a turn; its text. There must be ``room``."""
        started = time.monotonic()
        room = self.room if most_tokens is None else min(self.room, most_tokens)
        answer = await self._loop.server_manager.generate(
            request_id=request_id,
            prompt_ids=self.context_ids,
            sampling_params={**sampling_params, "max_tokens": room},
        )
        return await self.add_sampled(answer, duration_s=time.monotonic() - started)

    async def add_sampled(self, answer: Any, *, duration_s: float | None = None) -> str:
        """Append a turn of the model (a ``TokenOutput`` of verl); its text without what ended it."""
        ids = list(answer.token_ids)[: self.room]
        logprobs = list(answer.log_probs)[: len(ids)] if answer.log_probs else None
        if self.logprobs is None and logprobs is not None and not any(self.mask):
            self.logprobs = [0.0] * len(self.mask)
        merged, mask, aligned = await self._loop.ct_merge_assistant_token(
            self.context_ids, ids, self.mask, self.logprobs, assistant_logprobs=logprobs
        )
        start = len(self.response_ids)
        self._take(merged, mask, aligned)
        text = self._decode(ids)
        self.messages.append({"role": "assistant", "content": text})
        span = Span("assistant", text, start, len(self.response_ids), duration_s, is_sampled=True)
        self.spans.append(span)
        self._note_server(answer)
        return text

    async def show(self, messages: Sequence[Message], *, duration_s: float | None = None) -> bool:
        """Append what the model is shown next (tools' results, a user's word).

        False where it leaves no room for a further turn: then nothing was appended.
        """
        messages = self._as_template_takes(messages)
        updated = [*self.messages, *messages]
        merged, mask, aligned = await self._loop.ct_merge_context_msg(
            self.messages, updated, self.context_ids, self.mask, self.logprobs, tools=self._tools
        )
        if len(merged.token_ids) - len(self.prompt_ids) >= self.max_response:
            return False
        start = len(self.response_ids) - merged.removed_prefix_token_count
        if merged.removed_prefix_token_count:  # a token that ended the turn and begins the next message
            self.spans[-1].end = start
        self._take(merged, mask, aligned)
        self.messages = updated
        self._note(messages, start, len(self.response_ids), duration_s, leading=False)
        return True

    def note_calls(self, calls: Sequence[ToolCall]) -> None:
        """Remember the calls of the model's last turn."""
        turn = next(span for span in reversed(self.spans) if span.is_sampled)
        turn.calls = list(calls)

    # -- what becomes of it ----------------------------------------------------------------

    @property
    def sampled_turns(self) -> int:
        """Turns that the model wrote."""
        return sum(span.is_sampled for span in self.spans)

    def trajectory(
        self, stop_reason: str, *, is_all_trained: bool = False, most_characters: int | None = None
    ) -> Trajectory:
        """Return the episode in a form for people to read, at most ``most_characters`` long."""
        turns = [
            Turn(
                role=span.role,
                text=span.text,
                tokens=span.end - span.start,
                is_trained=span.is_sampled or (is_all_trained and span.start >= 0),
                calls=span.calls,
                duration_s=span.duration_s,
            )
            for span in self.spans
        ]
        whole = Trajectory(turns=turns, stop_reason=stop_reason, duration_s=self.duration_s)
        return whole if most_characters is None else shorten(whole, most_characters)

    def to_output(
        self,
        *,
        reward: float,
        extra_fields: Mapping[str, Any],
        generation_s: float | None = None,
        tools_s: float = 0.0,
        is_all_trained: bool = False,
    ) -> AgentLoopOutput:
        """Return the sample to train on. ``is_all_trained`` sets the mask to 1 throughout.

        What was shown after the last sampled token conditions nothing and is left out; an episode without
        any sampled token becomes one token that nothing is learned from, since verl takes no empty ones.
        """
        end = max((place + 1 for place, bit in enumerate(self.mask) if bit), default=0)
        ids, mask = self.response_ids[:end], self.mask[:end]
        logprobs = None if self.logprobs is None else self.logprobs[:end]
        if not ids:
            ids, mask, logprobs = [self._filler()], [0], [0.0]
        elif is_all_trained:
            mask = [1] * len(ids)
        generated = sum(span.duration_s or 0.0 for span in self.spans if span.is_sampled)
        return AgentLoopOutput(
            prompt_ids=self.prompt_ids,
            response_ids=ids,
            response_mask=mask,
            response_logprobs=logprobs,
            reward_score=reward,
            # verl counts every message but the system's.
            num_turns=sum(span.role != "system" for span in self.spans),
            metrics=AgentLoopMetrics(
                generate_sequences=generated if generation_s is None else generation_s,
                tool_calls=tools_s,
                num_preempted=self.preempted,
            ),
            extra_fields={**self.extra_fields, **extra_fields},
        )

    # -- inside ----------------------------------------------------------------------------

    def _as_template_takes(self, messages: Sequence[Mapping[str, Any]]) -> list[Message]:
        if joins_results(self._loop):
            return join_after_results(messages)
        return [dict(message) for message in messages]

    def _take(self, merged: Any, mask: list[int], logprobs: list[float] | None) -> None:
        self.response_ids = list(merged.token_ids[len(self.prompt_ids) :])
        self.mask, self.logprobs = list(mask), logprobs
        if len(self.mask) != len(self.response_ids):
            raise AssertionError("mask and response differ in length")  # verl's builder broke its word

    def _note(
        self, messages: Sequence[Message], start: int, end: int, duration_s: float | None, *, leading: bool
    ) -> None:
        """Add one span for each run of consecutive messages of the same role.

        They were rendered together, so the template's own tokens cannot be told apart: they count with
        the first span of a prompt (which holds the tools), else with the last (which opens the next turn).
        """
        runs = [
            (role, "\n".join(str(message.get("content") or "") for message in run))
            for role, run in groupby(messages, key=lambda message: str(message["role"]))
        ]
        rest = 0 if leading else len(runs) - 1
        counts = [
            0 if place == rest else len(self._loop.tokenizer.encode(text, add_special_tokens=False))
            for place, (_, text) in enumerate(runs)
        ]
        counts[rest] = max(0, end - start - sum(counts))
        for (role, text), count in zip(runs, counts, strict=True):
            stop = min(start + count, end)
            self.spans.append(Span(cast("Role", role), text, start, stop, duration_s))
            start = stop

    def _note_server(self, answer: Any) -> None:
        if answer.num_preempted is not None:
            self.preempted = max(self.preempted, 0) + answer.num_preempted
        newest = answer.extra_fields.get("max_global_steps")
        if not self.extra_fields:
            self.extra_fields = dict(answer.extra_fields)
        elif newest is not None:
            self.extra_fields["max_global_steps"] = newest

    def _decode(self, ids: Sequence[int]) -> str:
        """Decode without tokens that end a turn. Other special tokens stay: tags of calls may be special."""
        ends = self._ending_ids()
        stop = len(ids)
        while stop and ids[stop - 1] in ends:
            stop -= 1
        return str(self._loop.tokenizer.decode(ids[:stop], skip_special_tokens=False))

    def _ending_ids(self) -> set[int]:
        tokenizer = self._loop.tokenizer
        named = tokenizer.convert_tokens_to_ids(["<|im_end|>", "<|endoftext|>", "<|eot_id|>"])
        return {i for i in [*named, tokenizer.eos_token_id] if i is not None and i != tokenizer.unk_token_id}

    def _filler(self) -> int:
        tokenizer = self._loop.tokenizer
        return int(tokenizer.eos_token_id if tokenizer.eos_token_id is not None else self.prompt_ids[-1])
