"""What the parts of a tool-use reward weigh, and what its faults cost; the defaults are the platform's."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

WEIGHTS = {"completion": 0.40, "tool_f1": 0.25, "efficiency": 0.15, "timing": 0.10, "format": 0.10}
#: Of a redundant call each, at most two; of the others once.
PENALTIES = {
    "wrong_tool": -0.3,
    "redundant_call": -0.2,
    "format_error": -0.1,
    "timeout": -0.5,
    "hallucinated_tool": -0.4,
}
#: What can be turned off.
SWITCHES = ("compare_arguments", "run_calls")
#: Other names of the parts.
_ALSO = {
    "task_completion": "completion",
    "tool_accuracy": "tool_f1",
    "timing_quality": "timing",
    "format_compliance": "format",
}


class BadRewardSettings(ValueError):
    """A weight or a penalty cannot be used; the message says which."""


@dataclass(frozen=True)
class RewardSettings:
    """Weights are shares of their sum; penalties are 0 or below."""

    weights: Mapping[str, float] = field(default_factory=lambda: dict(WEIGHTS))
    penalties: Mapping[str, float] = field(default_factory=lambda: dict(PENALTIES))
    #: Whether a right tool counts only as far as its arguments are right.
    compare_arguments: bool = True
    #: Whether calls are run where their tools can be simulated, and what came of them counts.
    run_calls: bool = True

    @classmethod
    def parse(
        cls,
        weights: Mapping[str, Any] | None = None,
        penalties: Mapping[str, Any] | None = None,
        *,
        compare_arguments: bool = True,
        run_calls: bool = True,
    ) -> "RewardSettings":
        """Build settings from the given values and the defaults. Raises ``BadRewardSettings``."""
        shares = {**WEIGHTS, **_read(weights or {}, WEIGHTS, "weight")}
        costs = {**PENALTIES, **_read(penalties or {}, PENALTIES, "penalty")}
        for name, value in shares.items():
            if value < 0:
                raise BadRewardSettings(f"the weight of {name} is {value:g}; it must not be negative")
        for name, value in costs.items():
            if value > 0:
                raise BadRewardSettings(f"the penalty {name} is {value:g}; it must not be positive")
        total = math.fsum(shares.values())
        if not total > 0:
            raise BadRewardSettings("all weights are 0, so every reward would be 0")
        shares = {name: value / total for name, value in shares.items()}
        return cls(shares, costs, compare_arguments, run_calls)

    @classmethod
    def parse_options(cls, options: Mapping[str, Any]) -> "RewardSettings":
        """Build settings from the reward's options: ``weight_*``, ``penalty_*`` and the switches."""
        switches = {name: bool(options[name]) for name in SWITCHES if name in options}
        return cls.parse(_named(options, "weight_"), _named(options, "penalty_"), **switches)

    @classmethod
    def parse_texts(cls, weights: str | None, penalties: str | None, **switches: bool) -> "RewardSettings":
        """Build settings from JSON objects as given on a command line."""
        return cls.parse(_object(weights, "weights"), _object(penalties, "penalties"), **switches)

    @classmethod
    def parse_option_text(cls, options: str) -> "RewardSettings":
        """Build settings from the reward's options in a JSON object."""
        return cls.parse_options(_object(options, "options of the reward"))

    def as_record(self) -> dict[str, Any]:
        """Return all settings as JSON."""
        return {
            "weights": dict(self.weights),
            "penalties": dict(self.penalties),
            "compare_arguments": self.compare_arguments,
            "run_calls": self.run_calls,
        }


def _read(given: Mapping[str, Any], known: Mapping[str, float], what: str) -> dict[str, float]:
    found = {}
    for key, value in given.items():
        name = _ALSO.get(key, key)
        if name not in known:
            raise BadRewardSettings(f"unknown {what} {key}; choose from {', '.join(known)}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
            raise BadRewardSettings(f"the {what} {key} is {value!r}, not a number")
        found[name] = float(value)
    return found


def _named(options: Mapping[str, Any], prefix: str) -> dict[str, Any]:
    return {name.removeprefix(prefix): value for name, value in options.items() if name.startswith(prefix)}


def _object(text: str | None, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text) if text else {}
    except ValueError as error:
        raise BadRewardSettings(f"the {what} are not valid JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadRewardSettings(f"the {what} must be a JSON object")
    return found
