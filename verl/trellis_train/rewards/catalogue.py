"""Builds the scorer of a reward by its name: the names of ``trellis_recipes.rewards``."""

import asyncio
from typing import Any

import regex
from trellis_contracts.rewards import RewardTerm
from trellis_recipes.rewards import reward_kinds

from trellis_train.rewards.functions import REWARDS, Reward, compile_pattern, length
from trellis_train.rewards.resources import ScoringPlace
from trellis_train.rewards.sample import Sample
from trellis_train.rewards.scorer import PureScorer, RewardUnusable, Scorer


class ChildScorer:
    """A reward whose answer may take a child process seconds, beside the event loop."""

    def __init__(self, function: Reward, options: dict[str, Any]) -> None:
        self._function, self._options = function, options

    async def score(self, sample: Sample) -> float:
        """Wait for the child in a thread."""
        return await asyncio.to_thread(self._function, sample.response, sample.answer, **self._options)

    async def load(self) -> None:
        """Do nothing: the child process starts with the first question."""

    async def close(self) -> None:
        """Do nothing: the child process is shared and ends with this process."""


class LengthScorer:
    """The length penalty, which knows the number of tokens."""

    def __init__(self, options: dict[str, Any]) -> None:
        self._options = options

    async def score(self, sample: Sample) -> float:
        """Call the function."""
        return length(sample.response, sample.answer, tokens=sample.response_tokens, **self._options)

    async def load(self) -> None:
        """Do nothing: there is nothing to load."""

    async def close(self) -> None:
        """Do nothing: nothing is open."""


def build_scorer(term: RewardTerm, place: ScoringPlace) -> Scorer:
    """Build a term's scorer; ``RewardUnusable`` if it cannot score, ``ValueError`` for unknown rewards."""
    if term.name not in reward_kinds():
        raise ValueError(
            f"Unknown reward '{term.name}'. Available rewards: {', '.join(sorted(reward_kinds()))}."
        )
    options = dict(term.options)
    if term.name in ("math", "json_schema"):
        return ChildScorer(REWARDS[term.name], options)
    if term.name == "length":
        return LengthScorer(options)
    if term.name == "regex":
        _require_pattern(options["pattern"])
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

        source = _take(place.resources.models, options.pop("model"), "model")
        return RewardModelScorer(source, may_use_gpu=place.may_use_gpu, **options)
    from trellis_train.rewards.judge import JudgeScorer

    name = options.pop("endpoint")
    endpoint = _take(place.resources.judges, name, "judge")
    return JudgeScorer(name, endpoint, key=place.keys.get(name), folder=place.folder, **options)


def _require_pattern(pattern: str) -> None:
    try:
        compile_pattern(pattern)
    except regex.error as error:
        raise RewardUnusable(f"The pattern is not a valid regular expression: {error}.") from None


def _take(found: dict[str, Any], name: str, what: str) -> Any:
    if name not in found:
        raise RewardUnusable(f"The {what} '{name}' used by a reward is missing from this run's spec.")
    return found[name]
