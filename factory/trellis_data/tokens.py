"""Lengths in a model's own tokens."""

import os
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from trellis_data.operator import OperatorProblem

#: The file that a fast tokenizer is kept in.
TOKENIZER_FILE = "tokenizer.json"
_AT_A_TIME = 2048


def load_tokenizer(folder: Path) -> Any:
    """Load the tokenizer from a model's folder, without truncation and padding."""
    from tokenizers import Tokenizer

    path = folder / TOKENIZER_FILE
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # noqa: BLE001 - the library raises Exception itself
        raise OperatorProblem(
            "tokenizer_unreadable",
            f"{path} cannot be read as a tokenizer ({error}); name a model whose folder has "
            f"{TOKENIZER_FILE}.",
        ) from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def count_tokens(tokenizer: Any, texts: pl.Series) -> np.ndarray:
    """Count the tokens of each text (int64), without special tokens and without a chat template's."""
    # The library is silent about its threads after a fork only where this is set.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    counts = np.zeros(len(texts), dtype=np.int64)
    for start in range(0, len(texts), _AT_A_TIME):
        part = texts.slice(start, _AT_A_TIME).to_list()
        encoded = tokenizer.encode_batch_fast(part, add_special_tokens=False)
        counts[start : start + len(part)] = [len(each) for each in encoded]
    return counts
