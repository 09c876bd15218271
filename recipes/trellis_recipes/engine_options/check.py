"""Checks the value of an engine option against the rule for it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trellis_contracts.recipe import Engine

from trellis_recipes.engine_options.rules import REASONS, Kind, Rule, find_rule
from trellis_recipes.issues import nearest

#: Below this key, vLLM's options stand under their own names.
_VLLM = re.compile(r"(?:^|\.)engine_kwargs\.vllm\.(.+)$")
_RULES = {Engine.VERL_PPO: "verl", Engine.VERL_SFT: "verl", Engine.TRL: "trl", Engine.RETRIEVAL: "retrieval"}
#: A name of a column, a layer or a metric: nothing in it is a path, an expression or an option.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.\-]*")
_LIMIT = r"\d+(?:\.\d+)?(?:e-?\d+)?"
#: ``2.0``, ``0.5_4.0``, or several of them with commas between.
_LIMITS = re.compile(rf"{_LIMIT}(?:_{_LIMIT})?(?:,{_LIMIT}(?:_{_LIMIT})?)*")
_WANTED: dict[Kind, str] = {
    "integer": "an integer",
    "integers": "a list of integers",
    "limits": "a number, or two with '_' between them ('0.5_4.0')",
    "names": "a name of letters, digits, '_', '-' and '.', or a list of names",
    "number": "a number",
    "numbers": "numbers, true and false only",
    "switch": "true or false",
}


@dataclass(frozen=True)
class Problem:
    """What is wrong with a value: ``code``, a sentence, and a value that would do."""

    code: str
    message: str
    suggestion: str | None = None


def find_problem(engine: Engine, key: str, value: Any, *, has_type: bool) -> Problem | None:
    """Return the problem with a value for an option, or None.

    ``has_type`` says that the engine's own schema knows the key and its type; numbers need no rule then.
    """
    for name, leaf in _leaves(key, value):
        problem = _check_leaf(engine, name, leaf, has_type=has_type and name == key)
        if problem is not None:
            return problem
    return None


def rule_of(engine: Engine, key: str) -> Rule | None:
    """Return the rule for an option of an engine; options below ``engine_kwargs.vllm`` use vLLM's rules."""
    rules = _RULES[engine]
    option = _VLLM.search(key) if rules == "verl" else None
    if option is not None:
        return find_rule("vllm", option.group(1)) or Rule(keys=[key], refused="vllm")
    return find_rule(rules, key)


def _leaves(key: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield every value inside ``value`` by dotted key; an empty mapping or list yields none."""
    if isinstance(value, dict):
        for name, below in value.items():
            yield from _leaves(f"{key}.{name}", below)
    elif isinstance(value, list):
        for item in value:
            if isinstance(item, dict | list):
                yield from _leaves(key, item)
            else:
                yield key, item
    else:
        yield key, value


def _check_leaf(engine: Engine, key: str, value: Any, *, has_type: bool) -> Problem | None:
    rule = rule_of(engine, key)
    if rule is None:
        return None if has_type and not isinstance(value, str) else _refuse(key, "unknown")
    if rule.refused is not None:
        # Left empty or switched off, such an option does nothing.
        return None if has_type and value in (None, False, "") else _refuse(key, rule.refused)
    if value is None:
        return None
    if rule.choices:
        return _check_choice(rule, key, value, has_type=has_type)
    if rule.takes is not None and not _is_kind(rule.takes, value):
        return Problem("wrong_type", f"'{key}' takes {_WANTED[rule.takes]}, not {value!r}.")
    return None


def _refuse(key: str, reason: str) -> Problem:
    return Problem("option_refused", f"'{key}' cannot be set: {REASONS.get(reason, reason)}.")


def _check_choice(rule: Rule, key: str, value: Any, *, has_type: bool) -> Problem | None:
    if not isinstance(value, str):
        # Its own schema has checked the type: verl's intervals are numbers or a word.
        return None if has_type else Problem("wrong_type", f"'{key}' takes a text, not {value!r}.")
    for name in value.split(",") if rule.is_list else [value]:
        if name in rule.choices:
            continue
        closest = nearest(name, rule.choices) or (rule.choices[0] if len(rule.choices) == 1 else None)
        reason = rule.elsewhere.get(name, "unknown choice")
        message = f"'{key}' must be one of {', '.join(rule.choices)}. '{name}' cannot be used: {reason}."
        return Problem("unknown_choice", message, closest)
    return None


def _is_kind(kind: Kind, value: Any) -> bool:
    is_switch = isinstance(value, bool)
    is_integer = isinstance(value, int) and not is_switch
    is_number = is_integer or isinstance(value, float)
    return {
        "integer": is_integer,
        "integers": is_integer,
        "limits": is_number or (isinstance(value, str) and _LIMITS.fullmatch(value) is not None),
        "names": isinstance(value, str) and _are_names(value),
        "number": is_number,
        "numbers": is_number or is_switch,
        "switch": is_switch,
    }[kind]


def _are_names(value: str) -> bool:
    return all(_NAME.fullmatch(name.strip()) for name in value.split(",") if name.strip())
