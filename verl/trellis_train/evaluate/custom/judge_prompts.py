"""What a judge is asked, by version, and how its replies are read."""

import hashlib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

import yaml
from trellis_contracts.grades import BadReply, strip_fence

from trellis_train.sandbox.output import as_text

LOWEST, HIGHEST = 0, 10
#: The prompts that new evaluations use.
RUBRIC, PAIRWISE = "rubric-1", "pairwise-1"
_PLACE = re.compile(r"\{([a-z]+)\}")
_BULLET = re.compile(r"^\s*(?:[-*•]|\d+[.)])\s+")
_MOST_POINTS = 20
_SHOWN = 200


@dataclass(frozen=True)
class JudgePrompt:
    """A file ``judge_<version>.yaml``: its texts, and the hash of all of it."""

    version: str
    texts: Mapping[str, str]
    sha256: str

    def fill(self, name: str, **values: object) -> str:
        """Fill values into one of the texts in place of their names; braces in values stay unchanged."""
        return _PLACE.sub(
            lambda place: str(values[place.group(1)]) if place.group(1) in values else place.group(),
            self.texts[name],
        )


@cache
def read_prompt(version: str) -> JudgePrompt:
    """Read the judge prompt of this version."""
    content = files(__package__).joinpath(f"judge_{version}.yaml").read_bytes()
    texts: dict[str, str] = yaml.safe_load(content)
    return JudgePrompt(version, texts, hashlib.sha256(content).hexdigest())


def list_points(rubric: str) -> list[str]:
    """List the points of a rubric, one per line, without bullets or numbers; ``ValueError`` for too many.

    >>> list_points("- It is right.\\n- It is short.")
    ['It is right.', 'It is short.']
    """
    points = [_BULLET.sub("", line).strip() for line in rubric.splitlines() if line.strip()]
    if len(points) > _MOST_POINTS:
        raise ValueError(
            f"the rubric has {len(points)} lines; at most {_MOST_POINTS} points are allowed, one per line"
        )
    return points


def ask_by_rubric(points: list[str], *, prompt: str, answer: str, response: str) -> str:
    """Build the judge's question for grading a response; ``answer`` may be empty."""
    asked = read_prompt(RUBRIC)
    return asked.fill(
        "template",
        prompt=prompt,
        reference=asked.fill("reference", answer=answer) if answer else "",
        response=response,
        points="\n".join(f"{number}. {point}" for number, point in enumerate(points, start=1)),
        count=len(points),
        lowest=LOWEST,
        highest=HIGHEST,
        mark=_mark(response),
    )


def ask_for_better(rubric: str, *, prompt: str, first: str, second: str) -> str:
    """Build the judge's question which of two responses is better."""
    asked = read_prompt(PAIRWISE)
    criteria = asked.fill("criteria", rubric=rubric.strip()).rstrip() if rubric.strip() else ""
    return asked.fill(
        "template", prompt=prompt, first=first, second=second, criteria=criteria, mark=_mark(first + second)
    )


def read_grades(text: str, count: int) -> tuple[list[float], str]:
    """Read grades of all points, 0 to 1, and the reason; ``BadReply`` for anything other than requested."""
    reply = _read_object(text)
    grades = reply.get("points")
    if not isinstance(grades, list) or len(grades) != count:
        raise BadReply(f"the judge did not grade {count} points: {text.strip()[:_SHOWN]!r}")
    return [_read_grade(grade) for grade in grades], _read_reason(reply)


def read_better(text: str) -> tuple[float, str]:
    """Read the verdict (1: the first is better, 0: the second is, 0.5: neither) and the reason."""
    reply = _read_object(text)
    better = str(reply.get("better")).strip().lower()
    worth = {"a": 1.0, "b": 0.0, "tie": 0.5}
    if better not in worth:
        raise BadReply(f"the judge did not say which answer is better: {text.strip()[:_SHOWN]!r}")
    return worth[better], _read_reason(reply)


def _read_object(text: str) -> dict[str, Any]:
    stripped = text.strip()
    try:
        reply = json.loads(strip_fence(stripped))
    except (ValueError, RecursionError):
        reply = None
    if not isinstance(reply, dict):
        raise BadReply(f"the judge's reply is not the requested JSON object: {stripped[:_SHOWN]!r}")
    return reply


def _read_grade(grade: Any) -> float:
    if isinstance(grade, bool) or not isinstance(grade, int | float) or not math.isfinite(grade):
        raise BadReply(f"the judge's grade {str(grade)[:_SHOWN]!r} is not a number")
    if not LOWEST <= grade <= HIGHEST:
        raise BadReply(f"the judge's grade {grade} is not between {LOWEST} and {HIGHEST}")
    return (grade - LOWEST) / (HIGHEST - LOWEST)


def _read_reason(reply: dict[str, Any]) -> str:
    return as_text(str(reply.get("reason") or "").strip()[:2000])


def _mark(text: str) -> str:
    """Compute a part of the tags around a response, which cannot know it and so cannot close them."""
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:8]
