"""What a judge replies: a grade, read strictly."""

import json
import math

_FENCE = "```"


class BadReply(ValueError):
    """The judge did not reply with a grade."""


def ask_for_grade(question: str, *, lowest: float, highest: float) -> str:
    """Append the required form of the reply (``parse_grade``) to a question."""
    return (
        f"{question}\n\nReply with a JSON object and nothing else: "
        f'{{"score": <a number from {lowest:g} to {highest:g}>}}'
    )


def strip_fence(text: str) -> str:
    """Remove the code fence around a text, without a regex, which would be slow on many spaces.

    >>> strip_fence('```json {"score": 7} ```')
    '{"score": 7}'
    """
    text = text.strip()
    if len(text) < 2 * len(_FENCE) or not (text.startswith(_FENCE) and text.endswith(_FENCE)):
        return text
    return text[len(_FENCE) : -len(_FENCE)].removeprefix("json").strip()


def parse_grade(text: str, *, lowest: float, highest: float) -> float:
    """Parse the grade in a reply, a JSON object with a ``score`` in range; raise ``BadReply`` otherwise.

    >>> parse_grade('{"score": 7}', lowest=0, highest=10)
    7.0
    """
    stripped = text.strip()
    try:
        reply = json.loads(strip_fence(stripped))
    except (ValueError, RecursionError):
        raise BadReply(f"the judge replied without a grade: {stripped[:200]!r}") from None
    score = reply.get("score") if isinstance(reply, dict) else None
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        raise BadReply(f"the judge replied without a grade: {stripped[:200]!r}")
    if not lowest <= score <= highest:
        raise BadReply(f"the judge's grade {score} is not within {lowest:g} to {highest:g}")
    return float(score)
