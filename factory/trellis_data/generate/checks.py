"""How good an answer is: against the seed row's own, or by a judge."""

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import NamedTuple

from trellis_contracts.generation import MatchCheck, ScorerCheck

from trellis_data.operator import Context, OperatorProblem
from trellis_data.scoring.scorer import Pair, Verdict

#: Digits with or without commas between thousands.
_NUMBER = re.compile(r"(?<![\w.])[-+−]?(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?")


class Attempt(NamedTuple):
    """An answer to score."""

    prompt: str
    answer: str
    reference: str | None


def check_judge(check: MatchCheck | ScorerCheck, context: Context) -> None:
    """Raise ``OperatorProblem`` where nobody can score; called before anything is paid for."""
    if isinstance(check, ScorerCheck) and check.name not in context.scorers:
        raise OperatorProblem(
            "judge_unknown",
            f"There is no judge '{check.name}'; name its file, as in --judge {check.name}=FILE.",
        )


def can_score(check: MatchCheck | ScorerCheck, reference: str | None) -> bool:
    """Return whether an answer could pass the check: matching needs a reference to match."""
    if isinstance(check, ScorerCheck):
        return True
    if reference is None or not reference.strip():
        return False
    return check.kind != "numeric" or last_number(reference) is not None


def score(check: MatchCheck | ScorerCheck, attempts: Sequence[Attempt], context: Context) -> list[Verdict]:
    """Score the attempts; return one verdict for each, in order."""
    if not attempts:
        return []
    if isinstance(check, MatchCheck):
        return [Verdict(float(_agree(check.kind, each.answer, each.reference or ""))) for each in attempts]
    verdicts = context.scorers[check.name].score([Pair(each.prompt, each.answer) for each in attempts])
    if all(verdict.problem == "unreachable" for verdict in verdicts):
        raise OperatorProblem(
            "judge_unreachable",
            f"The judge '{check.name}' answered none of {len(verdicts)} calls; call again when it is back: "
            "what was answered before is kept.",
        )
    return verdicts


def _agree(kind: str, answer: str, reference: str) -> bool:
    if kind == "numeric":
        return last_number(answer) == last_number(reference)
    said, wanted = " ".join(answer.split()), " ".join(reference.split())
    return said == wanted if kind == "exact" else wanted in said


def last_number(text: str) -> Decimal | None:
    """Return the last number in a text.

    >>> last_number("2 and 2 is 1,004.50")
    Decimal('1004.50')
    """
    found = _NUMBER.findall(text)
    try:
        return Decimal(found[-1].replace(",", "").replace("−", "-")) if found else None
    except InvalidOperation:
        return None
