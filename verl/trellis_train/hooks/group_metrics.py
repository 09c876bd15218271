"""What became of a step's groups: those without spread, right or wrong, and the tokens spent on them.

The advantage of a group-relative method (GRPO, RLOO) is zero where all responses to a prompt score the same
(DAPO, arXiv:2503.14476, section 3.2).
"""

from collections.abc import Sequence

from trellis_recipes.answer_part import ACCURACY

from trellis_train.hooks.step_responses import StepResponses, places_by_group

#: Shares of the groups of two and more responses.
UNIFORM_GROUP_FRACTION = "training/uniform_group_fraction"
ALL_CORRECT_GROUP_FRACTION = "training/all_correct_group_fraction"
ALL_WRONG_GROUP_FRACTION = "training/all_wrong_group_fraction"
#: Share of the tokens of such groups that were written for uniform ones.
UNIFORM_GROUP_TOKEN_FRACTION = "training/uniform_group_token_fraction"  # noqa: S105


def measure_groups(step: StepResponses) -> dict[str, float]:
    """Compute the shares of uniform groups, 0 to 1; empty without a group of at least two.

    Right and wrong are left out where the rewards do not say so of every response.
    """
    groups = places_by_group(step.groups)
    if not groups:
        return {}
    uniform = [found for found in groups if len({step.scores[place] for place in found}) == 1]
    tokens = _count_tokens(step, groups)
    shares = {UNIFORM_GROUP_FRACTION: len(uniform) / len(groups)}
    if tokens:
        shares[UNIFORM_GROUP_TOKEN_FRACTION] = _count_tokens(step, uniform) / tokens
    if all(ACCURACY in info for info in step.infos):
        right = [{step.infos[place][ACCURACY] >= 1.0 for place in found} for found in uniform]
        shares[ALL_CORRECT_GROUP_FRACTION] = right.count({True}) / len(groups)
        shares[ALL_WRONG_GROUP_FRACTION] = right.count({False}) / len(groups)
    return shares


def _count_tokens(step: StepResponses, groups: Sequence[Sequence[int]]) -> int:
    return sum(step.written[place] for found in groups for place in found)
