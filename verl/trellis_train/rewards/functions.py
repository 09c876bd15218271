"""The reward functions: each takes response and reference answer, and returns a number.

All but the length penalty return 1.0 or 0.0 and say when. None uses network or clock,
and none raises on any text that a model may write.
"""

import re
from collections.abc import Callable
from functools import lru_cache

from trellis_train.rewards.answers import (
    after_thinking,
    as_number,
    find_boxed,
    find_gsm8k_answer,
    find_reference_answer,
    squeeze,
)
from trellis_train.rewards.math_check import are_equal_expressions

Reward = Callable[..., float]
_THOUGHT = re.compile(r"\s*<think>(.*?)</think>(.*)", re.DOTALL)


def exact(response: str, truth: str) -> float:
    """1 where the answer is the reference, white space aside.

    >>> exact("<think>3 and 4</think> 7", "7"), exact("It is 7", "7")
    (1.0, 0.0)
    """
    return float(squeeze(after_thinking(response)) == squeeze(truth))


def contains(response: str, truth: str) -> float:
    """1 where the reference stands in the answer as a word of its own; 0 for an empty reference.

    >>> contains("It is 7.", "7"), contains("It is 17.", "7")
    (1.0, 0.0)
    """
    wanted = squeeze(truth)
    if not wanted:
        return 0.0
    pattern = rf"(?<!\w){re.escape(wanted)}(?!\w)"
    return float(re.search(pattern, squeeze(after_thinking(response))) is not None)


def regex(response: str, truth: str, *, pattern: str) -> float:
    """1 where the last match of the pattern (its first group, if it has one) is the reference.

    >>> regex("a = 3, b = 4", "4", pattern=r"= (\\d+)")
    1.0
    """
    matches = list(_compiled(pattern).finditer(after_thinking(response)))
    if not matches:
        return 0.0
    last = matches[-1]
    found = last.group(1) if last.re.groups else last.group(0)
    return float(_is_same(found or "", truth))


def gsm8k(response: str, truth: str) -> float:
    """1 where the number after the last ``####`` is that of the reference; a bare number scores 0.

    >>> gsm8k("2 + 2 = 4\\n#### 4", "1+3=4\\n#### 4"), gsm8k("4", "4")
    (1.0, 0.0)
    """
    found = find_gsm8k_answer(after_thinking(response))
    return 0.0 if found is None else float(_is_same(found, find_reference_answer(truth)))


def math(response: str, truth: str) -> float:
    r"""1 where the answer equals the reference as a mathematical expression.

    The answer is what stands in the last ``\boxed{}``, else after ``####``, else the
    answer as a whole. Expressions that cannot be compared within a time limit score 0.

    >>> math(r"so \boxed{\frac{1}{2}}", "0.5"), math("1/3", "0.3")
    (1.0, 0.0)
    """
    text = after_thinking(response)
    found = find_boxed(text) or find_gsm8k_answer(text) or text
    wanted = find_reference_answer(truth)
    if not found or not wanted:
        return 0.0
    return float(_is_same(found, wanted) or are_equal_expressions(found, wanted))


def think_format(response: str, truth: str) -> float:
    """1 where the response is ``<think>thought</think>answer``, neither empty, each tag once.

    >>> think_format("<think>1+1</think>2", ""), think_format("2", "")
    (1.0, 0.0)
    """
    del truth
    match = _THOUGHT.fullmatch(response)
    if match is None or response.count("<think>") != 1 or response.count("</think>") != 1:
        return 0.0
    return float(bool(match.group(1).strip()) and bool(match.group(2).strip()))


def length(response: str, truth: str, *, free_characters: int) -> float:
    """0 up to the free length, from there falling evenly to -1 at twice that length.

    >>> length("x" * 15, "", free_characters=10)
    -0.5
    """
    del truth
    excess = len(response) - free_characters
    return -min(1.0, max(0.0, excess / free_characters))


#: By the names that recipes use.
REWARDS: dict[str, Reward] = {
    "exact": exact,
    "contains": contains,
    "regex": regex,
    "gsm8k": gsm8k,
    "math": math,
    "format": think_format,
    "length": length,
}


def _is_same(found: str, wanted: str) -> bool:
    """Equal as numbers where both are numbers, else as text."""
    left, right = as_number(found), as_number(wanted)
    if left is not None and right is not None:
        return left == right
    return squeeze(found) == squeeze(wanted)


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)
