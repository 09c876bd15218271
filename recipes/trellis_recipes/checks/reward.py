"""Checks the rewards of an RL run, and what is derived from a response's length."""

from typing import Any

from trellis_recipes.findings import Findings
from trellis_recipes.mapping import reward_mixture
from trellis_recipes.recipe_parameters import Value
from trellis_recipes.request import ComposeRequest
from trellis_recipes.rewards import check_mixture, find_pattern_problem

#: What every response of a run reports beside the parts of its reward.
ALWAYS_REPORTED = frozenset({"acc", "score", "reward"})
OVERLONG = frozenset({"overlong", "overlong_reward"})
#: Rewards that compare a response with the reference answer.
COMPARING = frozenset({"exact", "contains", "regex", "gsm8k", "math"})


def check_reward(
    findings: Findings, config: dict[str, Any], parameters: dict[str, Value], request: ComposeRequest
) -> None:
    """Check the reward parameters, the overlong penalty, and the metric that prompts are filtered by."""
    if parameters.get("rewards"):
        findings.errors += check_mixture(parameters["rewards"])[1]
    else:
        _check_simple(findings, parameters)
    _check_answers(findings, parameters, request)
    _check_overlong(findings, config)
    _check_filter_metric(findings, config, parameters)


def _check_simple(findings: Findings, parameters: dict[str, Value]) -> None:
    pattern = parameters.get("reward_pattern")
    if parameters.get("reward") == "regex" and not pattern:
        findings.error("pattern_missing", "params.reward_pattern", "The regex reward requires a pattern.")
    if isinstance(pattern, str) and pattern:
        problem = find_pattern_problem(pattern)
        if problem:
            findings.error("bad_pattern", "params.reward_pattern", f"Invalid pattern: {problem}.")
    if parameters.get("format_weight") == 1.0:
        findings.warn("only_format", "params.format_weight", "Correct answers get no reward.")


def _check_answers(findings: Findings, parameters: dict[str, Value], request: ComposeRequest) -> None:
    """Check for rewards that hardly any response earns: those for repeating a turn of a conversation."""
    if not request.has_uncheckable_answers:
        return
    comparing = [term["name"] for term in reward_mixture(parameters) if term["name"] in COMPARING]
    if comparing:
        findings.warn(
            "answers_not_checkable",
            "recipe",
            f"The first row's answer is a whole assistant turn, which hardly any response repeats, and the "
            f"reward '{comparing[0]}' compares responses with it. Use SFT for conversations, or a judge or "
            "reward model as the reward.",
            "sft",
        )


def _overlong_buffer(config: dict[str, Any]) -> dict[str, Any] | None:
    """Return verl's settings of the overlong penalty, or None where it does not apply."""
    if config["reward"]["reward_manager"]["name"] != "dapo":
        return None
    buffer = (config["reward"].get("reward_kwargs") or {}).get("overlong_buffer_cfg") or {}
    return buffer if buffer.get("enable") else None


def _check_overlong(findings: Findings, config: dict[str, Any]) -> None:
    buffer, longest = _overlong_buffer(config), config["data"]["max_response_length"]
    if buffer is None:
        return
    if buffer["len"] > longest:
        findings.error(
            "overlong_buffer_too_long",
            "params.overlong_buffer",
            f"The overlong buffer ({buffer['len']} tokens) is longer than the max response "
            f"length ({longest}).",
            str(max(1, longest // 4)),
        )
    elif buffer["len"] == longest and longest > 1:
        findings.warn(
            "overlong_from_start",
            "params.overlong_buffer",
            "The overlong buffer covers the entire response: every token is penalized.",
            str(max(1, longest // 4)),
        )


def _check_filter_metric(findings: Findings, config: dict[str, Any], parameters: dict[str, Value]) -> None:
    groups = config["algorithm"]["filter_groups"]
    if not groups["enable"]:
        return
    reported = {*ALWAYS_REPORTED, *(term["name"] for term in reward_mixture(parameters))}
    if _overlong_buffer(config):
        reported |= OVERLONG
    if groups["metric"] not in reported:
        findings.error(
            "filter_metric_unknown",
            "params.filter_metric",
            f"Responses don't report '{groups['metric']}'; available: {', '.join(sorted(reported))}.",
            "acc",
        )
