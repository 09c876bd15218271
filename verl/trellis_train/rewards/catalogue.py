"""Builds the scorer of a reward by its name: the names of ``trellis_recipes.rewards``."""

import asyncio
from typing import Any

from trellis_contracts.rewards import RewardTerm
from trellis_recipes.rewards import reward_kinds

from trellis_train.rewards.functions import REWARDS, length, math
from trellis_train.rewards.resources import ScoringPlace
from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import PureScorer, RewardUnusable, Scorer


class MathScorer:
    """Compares expressions in a child process, which may take seconds, beside the event loop."""

    async def score(self, sample: Sample) -> float:
        """Wait for the child in a thread."""
        return await asyncio.to_thread(math, sample.response, sample.answer)

    async def load(self) -> None:
        """The child starts with the first expression."""

    async def close(self) -> None:
        """The child is shared and ends with this process."""


class LengthScorer:
    """The length penalty, which knows the number of tokens."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options

    async def score(self, sample: Sample) -> float:
        """Call the function."""
        return length(sample.response, sample.answer, tokens=sample.response_tokens, **self._options)

    async def load(self) -> None:
        """There is nothing to load."""

    async def close(self) -> None:
        """Nothing is open."""


def build_scorer(term: RewardTerm, place: ScoringPlace) -> Scorer:
    """The scorer of a term; ``RewardUnusable`` where it could score nothing, ``ValueError`` for no reward."""
    if term.name not in reward_kinds():
        raise ValueError(f"There is no reward '{term.name}'. Rewards: {', '.join(sorted(reward_kinds()))}.")
    options = dict(term.options)
    if term.name == "math":
        return MathScorer()
    if term.name == "length":
        return LengthScorer(options)
    if term.name in REWARDS:
        return PureScorer(REWARDS[term.name], options)
    # Imported where it is used: each brings libraries that the others do not need.
    if term.name == "tool_use":
        from trellis_train.rewards.tool_use import ToolUseScorer

        return ToolUseScorer(**options)
    if term.name == "code":
        from trellis_train.rewards.code_tests import CodeScorer

        return CodeScorer(**options)
    if term.name == "python":
        from trellis_train.rewards.python_file import PythonFileScorer

        return PythonFileScorer(_take(place.resources.files, options.pop("file"), "file"), **options)
    if term.name == "reward_model":
        from trellis_train.rewards.reward_model import RewardModelScorer

        return RewardModelScorer(_take(place.resources.models, options.pop("model"), "model"), **options)
    from trellis_train.rewards.judge import JudgeScorer

    name = options.pop("endpoint")
    endpoint = _take(place.resources.judges, name, "judge")
    return JudgeScorer(name, endpoint, key=place.keys.get(name), folder=place.folder, **options)


def _take(found: dict[str, Any], name: str, what: str) -> Any:
    if name not in found:
        raise RewardUnusable(f"The {what} '{name}' of a reward was not handed over to this run.")
    return found[name]
