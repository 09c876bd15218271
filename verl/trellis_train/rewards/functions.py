"""The reward functions: each takes response and reference answer, and returns a number.

All but the penalties return 1.0 or 0.0 and say when. None uses a network, and none raises on any text that a
model may write, but ``TimeoutError`` where a person's pattern takes too long on it.
"""

import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import regex as timed_re
from trellis_recipes.data.reference_answers import find_boxed, find_gsm8k_answer, find_reference_answer

from trellis_train.rewards.answers import after_thinking, as_number, squeeze
from trellis_train.rewards.math_check import are_equal_expressions
from trellis_train.rewards.schema_check import fits_schema
from trellis_train.rewards.schema_worker import NO_JSON, are_equal, parse_json

Reward = Callable[..., float]
#: Where the number of tokens is not known.
CHARACTERS_PER_TOKEN = 4
#: Of the processor's time: a pattern may go back and forth for ever on some texts.
PATTERN_TIMEOUT_S = 1.0
_WORDS = re.compile(r"[\u3400-\u9fff]|[^\W\u3400-\u9fff]+")
_JSON_BLOCK = re.compile(r"```json\s*\n(.*?)```", re.DOTALL)
_THOUGHT = re.compile(r"\s*<think>(.*?)</think>(.*)", re.DOTALL)


def exact(response: str, truth: str) -> float:
    """Return 1 where the answer is the reference, white space aside.

    >>> exact("<think>3 and 4</think> 7", "7"), exact("It is 7", "7")
    (1.0, 0.0)
    """
    return float(squeeze(after_thinking(response)) == squeeze(truth))


def contains(response: str, truth: str) -> float:
    """Return 1 where the reference is in the answer as a separate word; 0 for an empty reference.

    >>> contains("It is 7.", "7"), contains("It is 17.", "7")
    (1.0, 0.0)
    """
    wanted = squeeze(truth)
    if not wanted:
        return 0.0
    pattern = rf"(?<!\w){re.escape(wanted)}(?!\w)"
    return float(re.search(pattern, squeeze(after_thinking(response))) is not None)


def regex(response: str, truth: str, *, pattern: str) -> float:
    """Return 1 if the pattern's last match (or its first group) equals the reference.

    >>> regex("a = 3, b = 4", "4", pattern=r"= (\\d+)")
    1.0
    """
    candidates = compile_pattern(pattern).finditer(after_thinking(response), timeout=PATTERN_TIMEOUT_S)
    try:
        matches = list(candidates)
    except TimeoutError:
        raise TimeoutError(f"the pattern took longer than {PATTERN_TIMEOUT_S:g} s on this response") from None
    if not matches:
        return 0.0
    last = matches[-1]
    found = last.group(1) if last.re.groups else last.group(0)
    return float(_is_same(found or "", truth))


def gsm8k(response: str, truth: str) -> float:
    """Return 1 where the number after the last ``####`` is the reference's; a bare number scores 0.

    >>> gsm8k("2 + 2 = 4\\n#### 4", "1+3=4\\n#### 4"), gsm8k("4", "4")
    (1.0, 0.0)
    """
    found = find_gsm8k_answer(after_thinking(response))
    return 0.0 if found is None else float(_is_same(found, find_reference_answer(truth)))


def math(response: str, truth: str) -> float:
    r"""Return 1 where the answer equals the reference as a mathematical expression.

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
    """Return 1 where the response is ``<think>thought</think>answer``, neither empty, each tag once.

    >>> think_format("<think>1+1</think>2", ""), think_format("2", "")
    (1.0, 0.0)
    """
    del truth
    match = _THOUGHT.fullmatch(response)
    if match is None or response.count("<think>") != 1 or response.count("</think>") != 1:
        return 0.0
    return float(bool(match.group(1).strip()) and bool(match.group(2).strip()))


def json_schema(
    response: str, truth: str, *, schema: str, equals_answer: bool = False, partial_credit: bool = False
) -> float:
    """Return 1 where the answer, or its last json code block, is JSON that fits the schema.

    With ``equals_answer`` it must also equal the reference, which must be JSON (ValueError otherwise); with
    ``partial_credit``, too, but an object scores the share of the reference's fields that it has right.

    >>> json_schema('{"a": 1}', "", schema='{"required": ["a"]}'), json_schema("a", "", schema="{}")
    (1.0, 0.0)
    >>> json_schema('{"a": 1, "b": 2}', '{"a": 1, "b": 3}', schema="{}", partial_credit=True)
    0.5
    """
    text = _find_json(after_thinking(response))
    if not fits_schema(text, schema):
        return 0.0
    if not (equals_answer or partial_credit):
        return 1.0
    wanted = parse_json(truth)
    if wanted is NO_JSON:
        raise ValueError("the reference answer is not valid JSON, so no response can match it")
    found = parse_json(text)
    if partial_credit and isinstance(found, dict) and isinstance(wanted, dict) and wanted:
        right = sum(are_equal(found.get(name, NO_JSON), value) for name, value in wanted.items())
        return right / len(wanted)
    return float(are_equal(found, wanted))


def length(
    response: str, truth: str, *, free_length: int, unit: str = "characters", tokens: int | None = None
) -> float:
    """Return 0 up to the free length, then linearly less, down to -1 at twice that length.

    ``tokens`` is the response's length where it is known; elsewhere 4 characters count as a token.

    >>> length("x" * 15, "", free_length=10), length("x" * 15, "", free_length=10, unit="tokens")
    (-0.5, 0.0)
    """
    del truth
    size = len(response)
    if unit == "tokens":
        size = tokens if tokens is not None else -(-size // CHARACTERS_PER_TOKEN)
    return 0.0 - min(1.0, max(0.0, (size - free_length) / free_length))


def repetition(response: str, truth: str, *, ngram: int = 4) -> float:
    """Return minus the share of n-grams in the response that repeat; a Chinese character is a word.

    >>> repetition("a b a b a b", "", ngram=2), repetition("one two three", "", ngram=2)
    (-0.6, 0.0)
    """
    del truth
    words = _WORDS.findall(response.lower())
    grams = [tuple(words[start : start + ngram]) for start in range(len(words) - ngram + 1)]
    return -(1.0 - len(set(grams)) / len(grams)) if len(set(grams)) < len(grams) else 0.0


#: By the names that recipes use.
REWARDS: dict[str, Reward] = {
    "exact": exact,
    "contains": contains,
    "regex": regex,
    "gsm8k": gsm8k,
    "math": math,
    "format": think_format,
    "json_schema": json_schema,
    "length": length,
    "repetition": repetition,
}


def _is_same(found: str, wanted: str) -> bool:
    """Compare as numbers where both are numbers, else as text."""
    left, right = as_number(found), as_number(wanted)
    if left is not None and right is not None:
        return left == right
    return squeeze(found) == squeeze(wanted)


@lru_cache(maxsize=64)
def compile_pattern(pattern: str) -> Any:
    """Compile a user's pattern so that searches can have a time limit; raises ``regex.error``."""
    return timed_re.compile(pattern)


def _find_json(text: str) -> str:
    """Return the last JSON code block, else the whole text."""
    blocks = _JSON_BLOCK.findall(text)
    return str(blocks[-1]) if blocks else text
