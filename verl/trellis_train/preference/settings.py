"""A job's engine settings, as the objects that TRL's trainers take."""

import dataclasses
import importlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from trellis_recipes.trl_schema import (
    MODEL_CLASS,
    REFERENCE_FREE_KEY,
    TRAIN_FILE_KEY,
    TRAINERS,
    VALIDATION_FILE_KEY,
)


@dataclass(frozen=True)
class Settings:
    """What one run is made of."""

    recipe: str
    #: ``DPOConfig`` and its like.
    arguments: Any
    #: TRL's ``ModelConfig``: weights, precision, adapter, quantisation.
    model: Any
    train_file: str
    validation_file: str | None
    #: DPO against a model that finds everything equally likely, in the place of the one at the start.
    is_reference_free: bool = False


def parse_overrides(lines: Iterable[str]) -> dict[str, Any]:
    """Parse ``key=value`` lines in Hydra's grammar; later ones win."""
    parser = OverridesParser.create()
    return {each.key_or_group: _plain(each.value()) for each in parser.parse_overrides(list(lines))}


def make_settings(recipe: str, values: dict[str, Any]) -> Settings:
    """Create settings from resolved values; raises ``ValueError`` for unknown ones."""
    config_class, model_class = _load(*TRAINERS[recipe].config), _load(*MODEL_CLASS)
    arguments = {name: values[name] for name in _names(config_class) if name in values}
    model = {name: values[name] for name in _names(model_class) if name in values}
    own = {TRAIN_FILE_KEY, VALIDATION_FILE_KEY, REFERENCE_FREE_KEY}
    unknown = set(values) - set(arguments) - set(model) - own
    if unknown:
        raise ValueError(f"Unknown TRL setting {', '.join(sorted(unknown))} for '{recipe}'.")
    is_reference_free = bool(values.get(REFERENCE_FREE_KEY))
    if is_reference_free:
        # The trainer then asks for what the reference says of the rows, and keeps none.
        arguments["precompute_ref_log_probs"] = True
    if TRAINERS[recipe].has_reference:
        # It loads the model to compare with itself.
        arguments["model_init_kwargs"] = {"dtype": values.get("dtype", "float32")}
    return Settings(
        recipe=recipe,
        arguments=config_class(**arguments),
        model=model_class(**model),
        train_file=values[TRAIN_FILE_KEY],
        validation_file=values.get(VALIDATION_FILE_KEY),
        is_reference_free=is_reference_free,
    )


def _load(module: str, name: str) -> Any:
    return getattr(importlib.import_module(module), name)


def _names(config_class: Any) -> set[str]:
    return {field.name for field in dataclasses.fields(config_class) if field.init}


def _plain(value: Any) -> Any:
    """Convert Hydra's quoted strings to plain ones."""
    if isinstance(value, dict):
        return {_plain(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value.text if hasattr(value, "text") else value
