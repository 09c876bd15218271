"""A reward in words, for people who read rollouts and pairs; in the product's two languages."""

from collections.abc import Mapping
from typing import Literal

from trellis_train.agents.tooluse.scoring.arguments import Schemas, find_other_arguments, match_arguments
from trellis_train.agents.tooluse.scoring.components import (
    Repeats,
    Trace,
    find_repeats,
    holds_answer,
    reaches_result,
)
from trellis_train.agents.tooluse.scoring.penalties import find_invented_tools, find_wrong_tools
from trellis_train.agents.tooluse.scoring.response import Response
from trellis_train.agents.tooluse.scoring.truth import GroundTruth

Language = Literal["en", "zh"]
_SENTENCES: dict[Language, dict[str, str]] = {
    "en": {
        "perfect": "All required tools were called, in the right order, and nothing else.",
        "rightly_none": "Rightly, no tool was called.",
        "missing": "Not called: {names}.",
        "needless": "No tool was needed, but {names} was called.",
        "wrong": "Called without need: {names}.",
        "invented": "There is no tool {names}.",
        "order": "The order differs from the reference: {names}.",
        "duplicates": "Calls that repeat an earlier one: {count}.",
        "retries": "Calls that try a tool again with other arguments: {count}.",
        "steps": "Calls made: {made}; {optimal} would do.",
        "bad_json": "Calls that are no JSON with a name and arguments: {count}.",
        "unbalanced": "<tool_call> tags do not pair.",
        "prose": "A call stands in the text, outside of <tool_call> tags.",
        "answer": "The answer does not hold: {names}.",
        "arguments": "Arguments that differ from the reference: {names}.",
        "failed": "Calls that failed: {names}.",
        "result": "The last call does not give the reference's result.",
        "timeout": "Calls ran out of time or were too many to be run.",
    },
    "zh": {
        "perfect": "按正确顺序调用了全部所需工具，没有多余调用。",
        "rightly_none": "无需工具，也没有调用，正确。",
        "missing": "未调用：{names}。",
        "needless": "无需工具，却调用了 {names}。",
        "wrong": "多余调用：{names}。",
        "invented": "不存在工具 {names}。",
        "order": "调用顺序与参考不同：{names}。",
        "duplicates": "有 {count} 次调用与之前的重复。",
        "retries": "有 {count} 次以不同参数重试同一工具。",
        "steps": "{optimal} 次调用即可，实际调用了 {made} 次。",
        "bad_json": "有 {count} 个工具调用无法解析为含 name 与 arguments 的 JSON。",
        "unbalanced": "<tool_call> 标签不配对。",
        "prose": "正文中出现了 <tool_call> 标签之外的调用。",
        "answer": "回答中缺少：{names}。",
        "arguments": "参数与参考不同：{names}。",
        "failed": "调用失败：{names}。",
        "result": "最后一次调用未得到参考结果。",
        "timeout": "有调用超时，或调用过多而未全部执行。",
    },
}
_COMMA: dict[Language, str] = {"en": ", ", "zh": "、"}


def write_feedback(
    response: Response,
    truth: GroundTruth,
    penalties: Mapping[str, float],
    language: Language,
    *,
    trace: Trace | None = None,
    tools: Schemas | None = None,
) -> str:
    """Write sentences on tools, order, repeats, form and answer; praise where there is nothing wrong.

    ``trace`` as in the reward; ``tools`` are those of the row, None where arguments do not count.
    """
    texts, comma = _SENTENCES[language], _COMMA[language]
    found: list[str] = []

    def say(name: str, *, names: list[str] | None = None, **values: int) -> None:
        found.append(texts[name].format(names=comma.join(names or []), **values))

    called = list(dict.fromkeys(call.name for call in response.calls))
    repeats = find_repeats(response.calls, truth)
    invented, wrong = find_invented_tools(response, truth), find_wrong_tools(response, truth)
    missing = [name for name in dict.fromkeys(truth.names) if name not in called]
    if missing:
        say("missing", names=missing)
    if wrong:
        say("wrong" if truth.steps else "needless", names=wrong)
    if invented:
        say("invented", names=invented)
    kept = [call.name for call in repeats.kept if call.name in truth.tools]
    if not missing and not repeats.retries and kept != truth.names:
        say("order", names=kept)
    if tools is not None and (others := _find_others(repeats, truth, tools)):
        say("arguments", names=others)
    if trace is not None:
        if failed := _find_failed(response, trace):
            say("failed", names=failed)
        elif truth.steps and truth.answer is None and reaches_result(repeats, truth, trace) is False:
            say("result")
    if repeats.duplicates:
        say("duplicates", count=repeats.duplicates)
    if repeats.retries:
        say("retries", count=repeats.retries)
    if truth.steps and len(response.calls) > truth.needed_steps:
        say("steps", made=len(response.calls), optimal=truth.needed_steps)
    if response.bad_calls:
        say("bad_json", count=response.bad_calls)
    if response.is_unbalanced:
        say("unbalanced")
    if response.has_call_in_prose(truth.tools | set(truth.available_tools or ())):
        say("prose")
    if truth.answer is not None and not holds_answer(response.prose, truth.answer):
        say("answer", names=[truth.answer])
    if "timeout" in penalties:
        say("timeout")
    if not found:
        say("perfect" if truth.steps else "rightly_none")
    return " ".join(found) if language == "en" else "".join(found)


def _find_others(repeats: Repeats, truth: GroundTruth, tools: Schemas) -> list[str]:
    """Return ``tool (argument, argument)`` for a tool's first calls whose arguments no step of it has."""
    found = []
    for name in dict.fromkeys(truth.names):
        wanted = [step.arguments for step in truth.steps if step.name == name]
        schema = tools.get(name, {}).get("parameters")
        for call in [each for each in repeats.kept if each.name == name][: len(wanted)]:
            closest = max(wanted, key=lambda step: match_arguments(call.arguments, step, schema))
            if other := find_other_arguments(call.arguments, closest, schema):
                found.append(f"{name} ({', '.join(other)})")
    return list(dict.fromkeys(found))


def _find_failed(response: Response, trace: Trace) -> list[str]:
    """Find tools with a call that was run and failed."""
    ran = zip(response.calls, trace.successes, strict=False)
    return list(dict.fromkeys(call.name for call, is_success in ran if not is_success))
