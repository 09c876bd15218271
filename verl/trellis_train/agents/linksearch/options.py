"""What a run may choose of its episodes: the recipe's parameters of group ``agent``."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

from trellis_train.agents.episode.tool_template import HERMES, OWN
from trellis_train.agents.linksearch.reward import DEFAULTS, RewardWeights

#: ``masked``: the loss over sampled tokens, the full reward; ``rollout``: over all of the rollout, outcome
#: only; ``simple``: one turn, a heuristic reward.
Mode = Literal["masked", "rollout", "simple"]


class BadOptions(ValueError):
    """An option is unknown or has a value that cannot be."""


@dataclass(frozen=True)
class Options:
    """Options of a run's episodes."""

    mode: Mode = "masked"
    #: Turns of the assistant.
    max_turns: int = 15
    #: Calls of one turn that are run.
    max_calls: int = 4
    #: Handles of an answer that count.
    max_profiles: int = 10
    #: A file for every rollout.
    detailed_logging: bool = False
    #: ``model``: its own chat template; ``hermes``: that with the tools put into it.
    tool_template: str = OWN
    #: Of the reward in the mode ``masked``; each is an option by its own name.
    weights: RewardWeights = DEFAULTS

    @classmethod
    def parse(cls, given: Mapping[str, Any]) -> "Options":
        """Parse the link search options. Raises ``BadOptions``."""
        of_weights = {field.name for field in fields(RewardWeights)}
        weights = {name: value for name, value in given.items() if name in of_weights}
        given = {name: value for name, value in given.items() if name not in of_weights}
        known = {field.name: field for field in fields(cls) if field.name != "weights"}
        if unknown := sorted(set(given) - set(known)):
            raise BadOptions(
                f"unknown link search option: {', '.join(unknown)}; "
                f"choose from {', '.join([*known, *sorted(of_weights)])}"
            )
        for name, value in given.items():
            if type(value) is not type(known[name].default):
                raise BadOptions(
                    f"{name} must be of type {type(known[name].default).__name__}, not {value!r}"
                )
        options = cls(**given, weights=_parse_weights(weights))
        if options.mode not in get_args(Mode):
            raise BadOptions(f"mode must be one of {', '.join(get_args(Mode))}, not {options.mode!r}")
        if options.tool_template not in (OWN, HERMES):
            raise BadOptions(f"tool_template must be {OWN} or {HERMES}, not {options.tool_template!r}")
        for name in ("max_turns", "max_calls", "max_profiles"):
            if getattr(options, name) < 1:
                raise BadOptions(f"{name} must be at least 1, not {getattr(options, name)}")
        return options

    @property
    def turns(self) -> int:
        """Turns of an episode in this mode."""
        return 1 if self.mode == "simple" else self.max_turns


def _parse_weights(given: Mapping[str, Any]) -> RewardWeights:
    for name, value in given.items():
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise BadOptions(f"{name} must be a number, not {value!r}")
    weights = RewardWeights(**{name: float(value) for name, value in given.items()})
    if negative := weights.find_negative():
        raise BadOptions(f"{negative} must be at least 0, not {getattr(weights, negative)}")
    return weights
