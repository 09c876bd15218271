"""The prepared rows, as the datasets that TRL's trainers read."""

from pathlib import Path
from typing import Any

from trellis_train.preference.conversations import encode_rows
from trellis_train.preference.settings import Settings

#: Beside the prepared files: what TRL makes of the rows (tokens, log-probabilities of the reference).
CACHE_FOLDER = "cache"
#: Recipes whose rows the trainer gets as tokens.
ENCODED_HERE = frozenset({"agent_sft"})


def locate_cache(settings: Settings) -> Path:
    """Return the folder of a run's computed datasets, which is not the user's own cache."""
    return Path(settings.train_file).parent / CACHE_FOLDER


def load_datasets(settings: Settings, tokenizer: Any) -> tuple[Any, Any]:
    """Load rows to train on, and rows to measure on (None without, or where the file has none)."""
    from datasets import Dataset
    from pyarrow.parquet import read_metadata

    cache = str(locate_cache(settings))
    train = Dataset.from_parquet(settings.train_file, cache_dir=cache)
    validation = settings.validation_file
    has_rows = validation is not None and read_metadata(validation).num_rows > 0
    measured = Dataset.from_parquet(validation, cache_dir=cache) if has_rows else None
    if settings.recipe in ENCODED_HERE:
        return encode_rows(train, tokenizer), None if measured is None else encode_rows(measured, tokenizer)
    if settings.recipe == "kto":
        # Its trainer goes through the rows in their order, and measures the divergence among neighbours.
        train = train.shuffle(seed=settings.arguments.seed)
    return train, measured
