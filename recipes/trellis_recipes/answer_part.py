"""Which of the numbers that rewards report says whether a response is right.

The trainer measures reward hacking by it, and the API chooses the example of such an alarm by it.
"""

from collections.abc import Collection, Sequence

from trellis_contracts.rewards import CORRECTNESS

from trellis_recipes.rewards import reward_kinds

#: What rewards report beside the score: 1 where the response is right.
ACCURACY = "acc"


def find_answer(terms: Sequence[str], names: Collection[str]) -> tuple[str | None, bool]:
    """Return the name of the part that says whether a response is right; None if nothing does.

    Besides, whether it is worth something for a response that is right in part: then one that is worth
    nothing, and is paid all the same, is paid for something else. ``names`` are those that were reported;
    without ``terms`` they are an agent's own.
    """
    if not terms:
        return next((name for name in CORRECTNESS if name in names), None), True
    first, kind = terms[0], reward_kinds().get(terms[0])
    own = [*CORRECTNESS] if kind is None or kind.answer_part is None else [kind.answer_part]
    part = next((f"{first}_{name}" for name in own if f"{first}_{name}" in names), None)
    if part is not None or len(terms) > 1:
        return part or first, True
    # "Right" is a value of 1, which says nothing of rewards that end elsewhere.
    is_told = ACCURACY in names and kind is not None and kind.highest == 1.0
    return (ACCURACY if is_told else None), False
