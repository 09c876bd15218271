"""The settings of TRL's trainers: fields of their config dataclasses, read from the installed wheels.

A trainer's settings are those of its config class (``DPOConfig``, with what it inherits from
transformers' ``TrainingArguments``) and of TRL's ``ModelConfig``, side by side as TRL's own
command line takes them.
"""

import importlib.util
from functools import cache
from pathlib import Path
from typing import NamedTuple

from trellis_contracts.recipe import Engine

from trellis_recipes.dataclass_fields import ConfigClasses, FieldType
from trellis_recipes.schema import EngineNotInstalled, EngineSchema

#: A class, and the module that defines it.
ClassPlace = tuple[str, str]


class Trainer(NamedTuple):
    """A trainer of TRL's, and how it differs from the others in what it holds and computes."""

    config: ClassPlace
    trainer: ClassPlace
    #: Texts that a row is trained on: a chosen and a rejected one, or one that is labelled.
    texts_per_row: int = 2
    #: Whether it compares with the model as it was at the start, which it then loads itself.
    has_reference: bool = False
    #: Whether the model gives one number for a text instead of scoring the vocabulary.
    is_scorer: bool = False


_DPO = Trainer(
    ("trl.trainer.dpo_config", "DPOConfig"), ("trl.trainer.dpo_trainer", "DPOTrainer"), has_reference=True
)
#: By recipe.
TRAINERS = {
    "agent_dpo": _DPO,
    "agent_sft": Trainer(
        ("trl.trainer.sft_config", "SFTConfig"), ("trl.trainer.sft_trainer", "SFTTrainer"), texts_per_row=1
    ),
    "dpo": _DPO,
    "kto": Trainer(
        ("trl.trainer.kto_config", "KTOConfig"),
        ("trl.trainer.kto_trainer", "KTOTrainer"),
        texts_per_row=1,
        has_reference=True,
    ),
    "reward_model": Trainer(
        ("trl.trainer.reward_config", "RewardConfig"),
        ("trl.trainer.reward_trainer", "RewardTrainer"),
        is_scorer=True,
    ),
    "orpo": Trainer(
        ("trl.experimental.orpo.orpo_config", "ORPOConfig"), ("trl.experimental.orpo", "ORPOTrainer")
    ),
    "simpo": Trainer(
        ("trl.experimental.cpo.cpo_config", "CPOConfig"), ("trl.experimental.cpo", "CPOTrainer")
    ),
}
MODEL_CLASS = ("trl.trainer.model_config", "ModelConfig")
_BASES = ("trl.trainer.base_config", "transformers.training_args")
#: What the platform's own engine takes besides: the files with the prepared rows.
TRAIN_FILE_KEY, VALIDATION_FILE_KEY = "train_file", "validation_file"
_OWN = {
    TRAIN_FILE_KEY: FieldType(frozenset({"str"})),
    VALIDATION_FILE_KEY: FieldType(frozenset({"str", "none"})),
}
#: What single recipes take besides. ``reference_free`` was TRL's own until it was dropped there.
REFERENCE_FREE_KEY = "reference_free"
_OWN_OF = {"agent_dpo": {REFERENCE_FREE_KEY: FieldType(frozenset({"bool"}))}}


@cache
def load_trl_schema(recipe_id: str) -> EngineSchema:
    """Load keys, types and defaults of the trainer behind a recipe (about 0.1 s at the first call)."""
    module, name = TRAINERS[recipe_id].config
    classes = _classes(module)
    fields = {**classes.fields(MODEL_CLASS[1]), **classes.fields(name)}
    defaults = {**classes.defaults(MODEL_CLASS[1]), **classes.defaults(name)}
    own = {**_OWN, **_OWN_OF.get(recipe_id, {})}
    tree = {key: defaults[key] for key in fields} | dict.fromkeys(own)
    return EngineSchema(Engine.TRL, tree, _Flat(fields | own))


class _Flat:
    """One group of settings, made of the fields of two classes."""

    def __init__(self, fields: dict[str, FieldType]) -> None:
        self._fields = fields

    def fields(self, class_name: str) -> dict[str, FieldType]:
        """Return all settings, which are at the root: no setting of TRL's is a group of further ones."""
        return self._fields if class_name == "" else {}


def _classes(module: str) -> ConfigClasses:
    return ConfigClasses(_locate(name) for name in (module, MODEL_CLASS[0], *_BASES))


def _locate(module: str) -> Path:
    """Return the path of a module's source file without importing its package."""
    package, *rest = module.split(".")
    spec = importlib.util.find_spec(package)
    for location in (spec.submodule_search_locations or []) if spec else []:
        path = Path(location, *rest).with_suffix(".py")
        if path.is_file():
            return path
    raise EngineNotInstalled(
        f"The installed '{package}' has no '{module}'; the recipe needs another version."
    )
