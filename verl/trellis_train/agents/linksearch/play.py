"""An episode from its first turn to its end: who speaks when, and what ends it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from trellis_train.agents.episode.tool_calls import (
    BrokenCall,
    CallFault,
    ParsedCall,
    parse_tool_calls,
)
from trellis_train.agents.episode.transcript import Message, PromptTooLong, Transcript
from trellis_train.agents.linksearch.calls import RETURN_RESULTS, SEARCH, Desk, FormatFault, Outcome, refuse
from trellis_train.agents.linksearch.options import Options
from trellis_train.agents.linksearch.prompts import LAST_TURN, system_prompt
from trellis_train.agents.linksearch.rubric import Call, Episode, StopReason
from trellis_train.rollout.response_times import measure_part

#: Calls that could not be understood and were answered with an error; the next one ends the episode.
FORGIVEN = 2


@dataclass
class Played:
    """What happened, beside what the transcript holds."""

    stop_reason: StopReason = "turns"
    turns: int = 0
    #: Calls that ran against the database, by the turn they stood in.
    calls: list[Call] = field(default_factory=list)
    #: All calls, as they are told of.
    told: list[Outcome] = field(default_factory=list)
    predicted: list[str] | None = None
    faults: Counter[FormatFault] = field(default_factory=Counter)
    malformed_turns: int = 0

    @property
    def tools_s(self) -> float:
        """Time that tools took."""
        return sum(outcome.told.duration_s for outcome in self.told)

    def as_episode(self, gold: Sequence[str], options: Options, transcript: Transcript) -> Episode:
        """Return the episode data that the rubric is computed from."""
        return Episode(
            calls=self.calls,
            predicted=self.predicted,
            gold=gold,
            stop_reason=self.stop_reason,
            turns=self.turns,
            max_turns=options.turns,
            max_profiles=options.max_profiles,
            cant_parse_tool_call=self.faults["parse"],
            bad_tool_call_name=self.faults["name"],
            bad_tool_call_args=self.faults["args"],
            malformed_turns=self.malformed_turns,
            prompt_tokens=len(transcript.prompt_ids),
            response_tokens=sum(transcript.mask),
        )


async def play(
    transcript: Transcript,
    desk: Desk,
    question: Sequence[Message],
    options: Options,
    *,
    request_id: str,
    sampling_params: Mapping[str, Any],
) -> Played:
    """Play an episode on an empty ``transcript``; ``question`` is the row's prompt."""
    played = Played()
    try:
        system = {"role": "system", "content": system_prompt(options, desk.tools.shape)}
        await transcript.begin([system, *question])
    except PromptTooLong:
        played.stop_reason = "context"
        return played
    for turn in range(1, options.turns + 1):
        if transcript.room < 1:
            played.stop_reason = "context"
            break
        text = await transcript.sample(request_id, sampling_params)
        played.turns = turn
        outcomes, ended = await _take_turn(played, transcript, desk, text, options)
        if ended is not None:
            played.stop_reason = ended
            break
        if turn < options.turns:
            shown = [{"role": "tool", "content": outcome.observation} for outcome in outcomes]
            if turn == options.turns - 1:
                shown.append({"role": "user", "content": LAST_TURN})
            waited_s = sum(outcome.told.duration_s for outcome in outcomes)
            if not await transcript.show(shown, duration_s=waited_s):
                played.stop_reason = "context"
                break
    return played


async def _take_turn(
    played: Played, transcript: Transcript, desk: Desk, text: str, options: Options
) -> tuple[list[Outcome], StopReason | None]:
    """Run the calls of a turn in order; what became of them, and how they ended the episode if they did."""
    items = list(parse_tool_calls(text).items)
    if transcript.room < 1 and items and _is_unclosed(items[-1]):
        items.pop()  # the room ended within a call: that is no fault of its form
    if not items:
        return [], "context" if transcript.room < 1 else "no_call"
    outcomes: list[Outcome] = []
    ended: StopReason | None = None
    for place, item in enumerate(items):
        outcome = await _run(desk, item, place, options)
        outcomes.append(outcome)
        ended = _note(played, outcome)
        if ended is not None:
            break
    played.malformed_turns += any(outcome.fault is not None for outcome in outcomes)
    transcript.note_calls([outcome.told for outcome in outcomes])
    return outcomes, ended


async def _run(desk: Desk, item: ParsedCall | BrokenCall, place: int, options: Options) -> Outcome:
    if place < options.max_calls:
        with measure_part("tool"):
            return await desk.call(item)
    arguments = item.arguments if isinstance(item, ParsedCall) else {}
    message = f"a turn has at most {options.max_calls} calls; this one was not run"
    return refuse(item.name, arguments, "TOO_MANY_CALLS", message)


def _note(played: Played, outcome: Outcome) -> StopReason | None:
    """Remember a call; how it ends the episode, if it does."""
    played.told.append(outcome)
    if outcome.fault is not None:
        played.faults[outcome.fault] += 1
        return outcome.fault if played.faults.total() > FORGIVEN else None
    if outcome.result is None:
        return None
    name, arguments = outcome.told.name, outcome.told.arguments
    if name == RETURN_RESULTS:
        played.predicted = list(arguments["results"])
        return "answered"
    tool: Literal["search_profile", "read_profile"] = "search_profile" if name == SEARCH else "read_profile"
    played.calls.append(Call(played.turns, tool, arguments, outcome.result))
    return None


def _is_unclosed(item: ParsedCall | BrokenCall) -> bool:
    return isinstance(item, BrokenCall) and item.fault is CallFault.UNCLOSED
