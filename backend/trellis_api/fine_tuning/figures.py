"""Metrics of the platform's engines under the names that clients of OpenAI's know."""

import re
from collections.abc import Iterable, Mapping

#: Patterns of the engine's keys. Of several that were reported, the first counts. A validation says the mean
#: of the scores by the number of answers to each prompt; the share of right ones, ``acc``, is another figure.
_PATTERNS = {
    "train_loss": (r"train/loss", r"loss", r"actor/pg_loss"),
    "valid_loss": (r"val/loss", r"eval_loss"),
    "train_mean_reward": (r"critic/score/mean",),
    "valid_mean_reward": (
        r"val-(core|aux)/dataset/score/mean@\d+",
        r"val-(core|aux)/dataset/reward/mean@\d+",
    ),
    "train_accuracy": (r"rewards/accuracies",),
    "valid_accuracy": (r"eval_rewards/accuracies",),
}
_KEYS = {name: tuple(map(re.compile, patterns)) for name, patterns in _PATTERNS.items()}
NAMES = tuple(_KEYS)
#: Tokens of one step.
TOKENS = "train/global_tokens"


def choose_keys(reported: Iterable[str]) -> list[str]:
    """Return those of the engine's metric keys that clients see as figures."""
    return [key for key in reported if any(_matches(key, patterns) for patterns in _KEYS.values())]


def rename(values: Mapping[str, float | None]) -> dict[str, float]:
    """Return the figures that were reported, under their public names."""
    found = {}
    for name, patterns in _KEYS.items():
        for pattern in patterns:
            value = next((value for key, value in values.items() if pattern.fullmatch(key)), None)
            if value is not None:
                found[name] = value
                break
    return found


def describe(figures: Mapping[str, float]) -> str:
    """Describe the figures in a sentence: ``training loss=0.53, validation loss=0.61``."""
    names = {"train_": "training ", "valid_": "validation "}
    told = []
    for name, value in figures.items():
        side, _, what = name.partition("_")
        told.append(f"{names[side + '_']}{what.replace('_', ' ')}={value:.4g}")
    return ", ".join(told)


def _matches(key: str, patterns: Iterable[re.Pattern[str]]) -> bool:
    return any(pattern.fullmatch(key) for pattern in patterns)
