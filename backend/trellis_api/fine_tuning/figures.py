"""Metrics of the platform's engines under the names that clients of OpenAI's know."""

from collections.abc import Mapping

#: The first of the engine's keys that was reported counts.
_KEYS = {
    "train_loss": ("train/loss", "loss", "actor/pg_loss"),
    "valid_loss": ("val/loss", "eval_loss"),
    "train_mean_reward": ("critic/score/mean",),
    "valid_mean_reward": ("val-core/dataset/score/mean@1", "val-core/dataset/acc/mean@1"),
    "train_accuracy": ("rewards/accuracies",),
    "valid_accuracy": ("eval_rewards/accuracies",),
}
NAMES = tuple(_KEYS)
#: Tokens of one step.
TOKENS = "train/global_tokens"


def names_by_key() -> dict[str, str]:
    """The engine's keys, and what each is called."""
    return {key: name for name, keys in _KEYS.items() for key in keys}


def rename(values: Mapping[str, float | None]) -> dict[str, float]:
    """The figures that there are."""
    found = {}
    for name, keys in _KEYS.items():
        value = next((values[key] for key in keys if values.get(key) is not None), None)
        if value is not None:
            found[name] = value
    return found


def describe(figures: Mapping[str, float]) -> str:
    """Figures in a sentence: ``training loss=0.53, validation loss=0.61``."""
    names = {"train_": "training ", "valid_": "validation "}
    told = []
    for name, value in figures.items():
        side, _, what = name.partition("_")
        told.append(f"{names[side + '_']}{what.replace('_', ' ')}={value:.4g}")
    return ", ".join(told)
