"""What happened in an episode, counted: all that the reward looks at, and what a person reads in the log."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from trellis_train.agents.linksearch.database import normalise_handle

#: How an episode ended: by its answer, without room for one, or by calls that could not be understood.
StopReason = Literal["answered", "turns", "context", "no_call", "parse", "name", "args"]
FORMAT_FAILURES: frozenset[StopReason] = frozenset({"parse", "name", "args"})
#: A search that brings so many rows asks for a narrower one.
MANY_ROWS = 20
_DENIALS = frozenset({"DENIED", "NOT_SELECT"})
#: Cells longer than this are texts, not handles.
_LONGEST_HANDLE = 200


@dataclass(frozen=True)
class Call:
    """A call that ran: of ``search_profile`` or ``read_profile``, with what came back."""

    turn: int
    name: Literal["search_profile", "read_profile"]
    arguments: dict[str, Any]
    result: dict[str, Any]


@dataclass(frozen=True)
class Episode:
    """An episode as it was logged. Turns count from 1."""

    calls: Sequence[Call]
    #: The handles that were returned; None without an answer.
    predicted: Sequence[str] | None
    gold: Sequence[str]
    stop_reason: StopReason
    turns: int
    max_turns: int
    max_profiles: int
    cant_parse_tool_call: int = 0
    bad_tool_call_name: int = 0
    bad_tool_call_args: int = 0
    #: Turns of which at least one call could not be understood.
    malformed_turns: int = 0
    prompt_tokens: int = 0
    response_tokens: int = 0


@dataclass(frozen=True)
class Rubric:
    """Counts of one episode; the reward is a function of these alone."""

    stop_reason: StopReason
    max_turns: int
    #: min(number of gold handles, most that may be returned): what a perfect answer finds.
    findable: int
    correct_handles: list[str]
    predicted_handles: list[str]
    gold_handles: list[str]
    score: float
    precision: float
    recall: float
    acc: bool
    turns: int
    attempted_answer: bool
    ran_out_of_turns: bool
    searches: int = 0
    unique_searches: int = 0
    repeated_searches: int = 0
    zero_result_searches: int = 0
    searches_with_results: int = 0
    reads: int = 0
    unique_reads: int = 0
    repeated_reads: int = 0
    invalid_reads: int = 0
    correct_profiles_read: int = 0
    #: Of the gold handles that were returned, those whose profile was read.
    returned_gold_read: int = 0
    broadened_search_after_zero: bool = False
    narrowed_search_after_many: bool = False
    read_after_good_search: bool = False
    cant_parse_tool_call: int = 0
    bad_tool_call_name: int = 0
    bad_tool_call_args: int = 0
    sql_errors: int = 0
    denied_searches: int = 0
    unseen_returned: int = 0
    malformed_turns: int = 0
    turn_first_correct_found: int | None = None
    turn_first_correct_read: int | None = None
    prompt_tokens: int = 0
    response_tokens: int = 0


@dataclass
class _Trace:
    """What is found out call by call."""

    gold: frozenset[str]
    counts: dict[str, int] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    searched: set[str] = field(default_factory=set)
    read: set[str] = field(default_factory=set)
    seen: set[str] = field(default_factory=set)
    found: set[str] = field(default_factory=set)
    first_found: int | None = None
    first_read: int | None = None
    #: Of the call before: rows of a search and the gold among them; None after anything else.
    last_rows: int | None = None
    last_gold: frozenset[str] = frozenset()
    was_search: bool = False

    def count(self, name: str) -> None:
        self.counts[name] = self.counts.get(name, 0) + 1

    def found_out(self) -> dict[str, Any]:
        """Return fields of the rubric; what did not happen keeps its default."""
        return {**self.counts, **dict.fromkeys(self.flags, True)}


def assess(episode: Episode) -> Rubric:
    """Count what happened."""
    gold = list(dict.fromkeys(normalise_handle(each) for each in episode.gold))
    answer = episode.predicted or []
    predicted = list(dict.fromkeys(normalise_handle(each) for each in answer))[: episode.max_profiles]
    trace = _Trace(frozenset(gold))
    for call in episode.calls:
        (_follow_search if call.name == "search_profile" else _follow_read)(trace, call)
    correct = [handle for handle in predicted if handle in trace.gold]
    findable = min(len(gold), episode.max_profiles)
    score = 2 * len(correct) / (len(predicted) + findable) if findable else 0.0
    rubric = Rubric(
        stop_reason=episode.stop_reason,
        max_turns=episode.max_turns,
        findable=findable,
        correct_handles=correct,
        predicted_handles=predicted,
        gold_handles=gold,
        score=score,
        precision=len(correct) / len(predicted) if predicted else 0.0,
        recall=len(correct) / len(gold) if gold else 0.0,
        acc=score > 0.5,
        turns=episode.turns,
        attempted_answer=episode.predicted is not None,
        ran_out_of_turns=episode.stop_reason == "turns",
        correct_profiles_read=len(trace.read & trace.gold),
        returned_gold_read=len(trace.read & set(correct)),
        unseen_returned=sum(handle not in trace.seen for handle in predicted),
        turn_first_correct_found=trace.first_found,
        turn_first_correct_read=trace.first_read,
        cant_parse_tool_call=episode.cant_parse_tool_call,
        bad_tool_call_name=episode.bad_tool_call_name,
        bad_tool_call_args=episode.bad_tool_call_args,
        malformed_turns=episode.malformed_turns,
        prompt_tokens=episode.prompt_tokens,
        response_tokens=episode.response_tokens,
    )
    return replace(rubric, **trace.found_out())


def _follow_search(trace: _Trace, call: Call) -> None:
    trace.count("searches")
    key = _key_of(call.arguments)
    trace.count("repeated_searches" if key in trace.searched else "unique_searches")
    trace.searched.add(key)
    trace.was_search = False
    if not call.result.get("success"):
        code = (call.result.get("error") or {}).get("code")
        trace.count("denied_searches" if code in _DENIALS else "sql_errors")
        trace.last_rows, trace.last_gold = None, frozenset()
        return
    rows = call.result.get("rows") or []
    shown = handles_in(rows)
    gold = frozenset(shown & trace.gold)
    if gold and trace.first_found is None:
        trace.first_found = call.turn
    _note_strategy(trace, len(rows), gold)
    trace.count("searches_with_results" if rows else "zero_result_searches")
    trace.seen |= shown
    trace.found |= gold
    trace.last_rows, trace.last_gold, trace.was_search = len(rows), gold, True


def _note_strategy(trace: _Trace, rows: int, gold: frozenset[str]) -> None:
    if trace.last_rows == 0 and gold - trace.found:
        trace.flags.add("broadened_search_after_zero")
    had_many = trace.last_rows is not None and trace.last_rows >= MANY_ROWS
    if had_many and 1 <= rows < MANY_ROWS and trace.last_gold and trace.last_gold <= gold:
        trace.flags.add("narrowed_search_after_many")


def _follow_read(trace: _Trace, call: Call) -> None:
    trace.count("reads")
    handle = normalise_handle(str(call.arguments.get("linkedin_handle", "")))
    trace.count("repeated_reads" if handle in trace.read else "unique_reads")
    is_gold = handle in trace.gold
    if trace.was_search and is_gold and handle in trace.last_gold:
        trace.flags.add("read_after_good_search")
    trace.was_search = False
    if not call.result.get("success"):
        trace.count("invalid_reads")
        return
    trace.read.add(handle)
    trace.seen.add(handle)
    if is_gold and trace.first_read is None:
        trace.first_read = call.turn


def _key_of(arguments: dict[str, Any]) -> str:
    """Return a key that is the same for identical searches, ignoring white space and case of the SQL."""
    sql = " ".join(str(arguments.get("sql", "")).lower().split())
    return f"{sql}\x00{arguments.get('params') or []!r}"


def handles_in(rows: Sequence[dict[str, Any]]) -> set[str]:
    """Return every short text of the rows: any may be a handle, under whatever name it was selected."""
    cells = (value for row in rows for value in row.values())
    return {
        normalise_handle(cell) for cell in cells if isinstance(cell, str) and len(cell) <= _LONGEST_HANDLE
    }
