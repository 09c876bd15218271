"""The settings of the retrieval engine, which is the platform's own: names, types and defaults."""

from functools import cache
from typing import Any

from trellis_contracts.recipe import Engine

from trellis_recipes.dataclass_fields import FieldType
from trellis_recipes.schema import EngineSchema

_INT, _FLOAT, _TEXT, _BOOL = (FieldType(frozenset({name})) for name in ("int", "float", "str", "bool"))
_TEXT_OR_NONE, _INT_OR_NONE = FieldType(frozenset({"str", "none"})), FieldType(frozenset({"int", "none"}))
#: Among ten tools or fewer, recall@10 is always 1.
MIN_TOOLS = 11
#: What the platform sets, and what to do instead of setting it.
RESERVED = {
    "model_path": "choose another model for the job",
    "train_file": "choose another dataset for the job",
    "validation_file": "choose another validation dataset for the job",
    "output_dir": "files stay in the job's folder",
    "resume_from": "resume the job instead",
    "device": "the platform selects the device",
}
_KEYS: dict[str, tuple[FieldType, Any]] = {
    "model_path": (_TEXT, None),
    "train_file": (_TEXT, None),
    "validation_file": (_TEXT_OR_NONE, None),
    "output_dir": (_TEXT, None),
    "resume_from": (_TEXT_OR_NONE, None),
    "device": (_TEXT, "cpu"),
    "pooling": (_TEXT, "mean"),
    "max_length": (_INT, 256),
    "total_steps": (_INT_OR_NONE, None),
    "epochs": (_INT, 3),
    "batch_size": (_INT, 64),
    "hard_negatives": (_INT, 4),
    "temperature": (_FLOAT, 0.05),
    "token_dropout": (_FLOAT, 0.0),
    "learning_rate": (_FLOAT, 2e-5),
    "warmup_ratio": (_FLOAT, 0.1),
    "weight_decay": (_FLOAT, 0.0),
    "grad_clip": (_FLOAT, 1.0),
    "gradient_checkpointing": (_BOOL, False),
    "save_every": (_INT, 100),
    "validate_every": (_INT, 20),
    "seed": (_INT, 0),
}


class _Flat:
    """One group of settings without further ones."""

    def fields(self, class_name: str) -> dict[str, FieldType]:
        """Return all settings, which are at the root."""
        return {} if class_name else {name: field for name, (field, _) in _KEYS.items()}


@cache
def load_retrieval_schema() -> EngineSchema:
    """Load keys, types and defaults."""
    return EngineSchema(Engine.RETRIEVAL, {name: default for name, (_, default) in _KEYS.items()}, _Flat())
