"""The five parts of a tool-use reward, each from 0 to 1. Pure functions: no clock, no network, no randomness.

``T`` stands for the set of tools of the reference, ``n`` for the calls that were made, duplicates included.
"""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from trellis_train.agents.tooluse.scoring.arguments import Schemas, match_tools
from trellis_train.agents.tooluse.scoring.response import Call, Response
from trellis_train.agents.tooluse.scoring.truth import GroundTruth
from trellis_train.rewards.answers import squeeze

#: What a call is worth where none was wanted: neither right nor all wrong.
UNWANTED = 0.5
#: Shares of the completion: with a trace coverage, success and answer, without one coverage and answer.
WITH_TRACE = (0.4, 0.3, 0.3)
WITHOUT_TRACE = (0.6, 0.4)
EXTRA_STEP = 0.2
DUPLICATE, RETRY = 0.2, 0.1
UNBALANCED, BAD_JSON, MOST_BAD_JSON, IN_PROSE = 0.3, 0.2, 0.4, 0.2


@dataclass(frozen=True)
class Trace:
    """What came of running the calls of a response."""

    #: For each call in order whether it succeeded; calls without an entry were not run.
    successes: tuple[bool, ...]
    #: A call took too long, or was not run any more because there were too many of them.
    has_timed_out: bool = False
    #: What each call that was run gave, to compare with the reference's result; none where that is not known.
    results: tuple[str, ...] = ()


@dataclass(frozen=True)
class Repeats:
    """The calls of a response without those that were made again."""

    kept: tuple[Call, ...]
    #: Positions of the kept ones among all calls.
    places: tuple[int, ...]
    #: Equal calls (tool and arguments), beyond the times that the reference makes them.
    duplicates: int
    #: Further calls of a tool with other arguments, beyond the reference's own calls of it.
    retries: int


def find_repeats(calls: Sequence[Call], truth: GroundTruth) -> Repeats:
    """Tell first calls from repeats; what the reference itself repeats is none."""
    allowed = Counter(_identity(step.name, step.arguments or {}) for step in truth.steps)
    seen: Counter[str] = Counter()
    kept: list[Call] = []
    places: list[int] = []
    for place, call in enumerate(calls):
        identity = _identity(call.name, call.arguments)
        seen[identity] += 1
        if seen[identity] <= max(1, allowed[identity]):
            kept.append(call)
            places.append(place)
    wanted, made = Counter(truth.names), Counter(call.name for call in kept)
    retries = sum(max(0, count - max(1, wanted[name])) for name, count in made.items())
    spare = max(0, truth.needed_steps - len(truth.steps))
    return Repeats(tuple(kept), tuple(places), len(calls) - len(kept), max(0, retries - spare))


def coverage(names: Sequence[str], truth: GroundTruth, *, has_calls: bool) -> float:
    """Compute |names ∩ T| / |T|; with empty T it is 1 without calls, else 0.5."""
    if not truth.tools:
        return UNWANTED if has_calls else 1.0
    return len(truth.tools & set(names)) / len(truth.tools)


def completion(response: Response, truth: GroundTruth, trace: Trace | None) -> float:
    """Score how much of the task is done.

    With a trace .4 coverage of the successful calls + .3 share of calls that succeeded + .3 answer; without
    .6 coverage + .4 answer. Where the row has no answer in prose, the answer of a trace is whether the last
    call gave the reference's result; where that is not known either, coverage stands in its place. Duplicates
    count in no share: making a successful call again must not pay.
    """
    has_calls = bool(response.calls)
    if trace is None:
        cov = coverage([call.name for call in response.calls], truth, has_calls=has_calls)
        share, answer = WITHOUT_TRACE
        return share * cov + answer * _answer(response, truth, cov)
    repeats = find_repeats(response.calls, truth)
    outcomes = [place < len(trace.successes) and trace.successes[place] for place in repeats.places]
    succeeded = [call.name for call, ok in zip(repeats.kept, outcomes, strict=True) if ok]
    cov = coverage(succeeded, truth, has_calls=has_calls)
    ratio = sum(outcomes) / len(outcomes) if outcomes else float(not truth.steps)
    share, success, answer = WITH_TRACE
    came_out = _answer(response, truth, cov)
    if truth.answer is None and (is_reached := reaches_result(repeats, truth, trace)) is not None:
        came_out = float(is_reached)
    return share * cov + success * ratio + answer * came_out


def reaches_result(repeats: Repeats, truth: GroundTruth, trace: Trace) -> bool | None:
    """Tell whether the last non-duplicate call gave the reference's result; None if that is unknown."""
    if truth.result is None or len(trace.results) < len(trace.successes):
        return None
    last = repeats.places[-1] if repeats.places else None
    return last is not None and last < len(trace.results) and trace.results[last] == truth.result


def tool_f1(response: Response, truth: GroundTruth) -> float:
    """Compute F1 of the sets of tools; with empty T it is 1 without calls, else 0.5."""
    called = {call.name for call in response.calls}
    if not truth.tools:
        return UNWANTED if called else 1.0
    return 2 * len(called & truth.tools) / (len(called) + len(truth.tools))


def tool_accuracy(response: Response, truth: GroundTruth, tools: Schemas) -> float:
    """Compute ``tool_f1``, where a right tool counts as far as its arguments are the reference's."""
    if not truth.tools:
        return tool_f1(response, truth)
    called = {call.name for call in response.calls}
    matched = match_tools(find_repeats(response.calls, truth).kept, truth, tools)
    return 2 * sum(matched.values()) / (len(called) + len(truth.tools))


def efficiency(response: Response, truth: GroundTruth) -> float:
    """Return 1 up to the required number of calls, then .2 less for each further such number."""
    optimal, made = truth.needed_steps, len(response.calls)
    if made <= optimal:
        return 1.0
    return max(0.0, 1.0 - EXTRA_STEP * (made - optimal) / max(1, optimal))


def timing(response: Response, truth: GroundTruth) -> float:
    """Compute clip(g·o - .2 duplicates - .1 retries): whether to call at all, and in which order.

    g is 1 where calls were made exactly if any are wanted; o is the longest common subsequence with the
    reference's tools, as a share of them. Duplicates stand in no order, so that they cannot make one.
    """
    if bool(response.calls) != bool(truth.steps):
        return 0.0
    repeats = find_repeats(response.calls, truth)
    names = [call.name for call in repeats.kept]
    order = longest_common(names, truth.names) / len(truth.steps) if truth.steps else 1.0
    return min(1.0, max(0.0, order - DUPLICATE * repeats.duplicates - RETRY * repeats.retries))


def well_formed(response: Response, truth: GroundTruth) -> float:
    """Return 1 - .3 for unpaired tags - .2 per bad call (at most .4) - .2 for a call in the prose."""
    known = truth.tools | set(truth.available_tools or ())
    lost = UNBALANCED * response.is_unbalanced
    lost += min(MOST_BAD_JSON, BAD_JSON * response.bad_calls)
    lost += IN_PROSE * response.has_call_in_prose(known)
    return 1.0 - lost


def longest_common(left: Sequence[str], right: Sequence[str]) -> int:
    """Compute the length of the longest common subsequence, in time len(left) x len(right)."""
    row = [0] * (len(right) + 1)
    for one in left:
        above_left = 0
        for column, other in enumerate(right, start=1):
            above = row[column]
            row[column] = above_left + 1 if one == other else max(above, row[column - 1])
            above_left = above
    return row[-1]


def holds_answer(prose: str, answer: str) -> bool:
    """Tell whether the answer appears in the prose on its own, case and white space aside.

    >>> holds_answer("It is 7 km.", "7 km"), holds_answer("It is 17", "7"), holds_answer("It is 7.5", "7")
    (True, False, False)
    """
    wanted = squeeze(answer).casefold()
    if not wanted:
        return False
    # Letters of the alphabet only: Chinese is written without blanks.
    pattern = rf"(?<![0-9A-Za-z_])(?<!\d\.){re.escape(wanted)}(?![0-9A-Za-z_]|[.,]\d)"
    return re.search(pattern, squeeze(prose).casefold()) is not None


def _answer(response: Response, truth: GroundTruth, cov: float) -> float:
    return cov if truth.answer is None else float(holds_answer(response.prose, truth.answer))


def _identity(name: str, arguments: object) -> str:
    return f"{name} {json.dumps(arguments, sort_keys=True, default=str)}"
