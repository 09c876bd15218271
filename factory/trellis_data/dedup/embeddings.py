"""Where a row's vector comes from: a column, a file, an endpoint, or the characters of its text.

All vectors have length one, so that a dot product is the cosine of their angle; they lie on disk as float16.
"""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa

from trellis_data.dedup.number_columns import Column, ColumnWriter, Ragged
from trellis_data.dedup.sources import TextBuffers
from trellis_data.operator import OperatorProblem

#: Numbers of a lexical vector, and characters of what is counted.
LEXICAL_SIZE = 384
GRAM_CHARACTERS = 4
_GRAM_BITS = 20
_BLOCK = 1 << 13
_TEXTS_PER_REQUEST = 64
_ATTEMPTS = 4
_TIMEOUT_S = 60.0


def unit(vectors: np.ndarray) -> np.ndarray:
    """Scale vectors to length one; those of length zero stay as they are."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.asarray(vectors / np.where(lengths == 0, 1, lengths), dtype=np.float32)


def of_column(column: pa.ChunkedArray, name: str) -> np.ndarray:
    """Read the vectors in a column of lists of numbers; a row without one gets zeros."""
    lists = column.combine_chunks()
    lengths = lists.value_lengths().drop_null().to_numpy()
    size = int(lengths.max(initial=0))
    if size == 0 or (lengths != size).any():
        found = sorted(set(lengths.tolist()))[:5]
        raise OperatorProblem(
            "vectors_differ", f"Column '{name}' must hold vectors of one length; it has {found}."
        )
    vectors = np.zeros((len(lists), size), dtype=np.float32)
    known = lists.is_valid().to_numpy(zero_copy_only=False)
    vectors[known] = lists.drop_null().flatten().to_numpy(zero_copy_only=False).reshape(-1, size)
    return unit(np.nan_to_num(vectors))


def of_file(path: Path, first: int, count: int) -> np.ndarray:
    """Read the vectors of some rows from a NumPy file with one vector per row."""
    every = np.load(path, mmap_mode="r")
    if every.ndim != 2 or len(every) < first + count:
        raise OperatorProblem(
            "vectors_missing",
            f"{path.name} holds {every.shape}; rows {first} to {first + count} are asked for.",
        )
    return unit(np.asarray(every[first : first + count], dtype=np.float32))


def of_endpoint(
    texts: Sequence[str], url: str, model: str, key_variable: str | None, *, allows_local: bool
) -> np.ndarray:
    """Request the vectors of some texts from an OpenAI-style endpoint; retry if it is busy.

    ``allows_local``: the endpoint may lie on this machine or in a private network (``addresses``).
    """
    from trellis_data.addresses import open_client

    key = os.environ.get(key_variable, "") if key_variable else ""
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    found: list[list[float]] = []
    with open_client(allows_local=allows_local, timeout_s=_TIMEOUT_S, headers=headers) as client:
        for first in range(0, len(texts), _TEXTS_PER_REQUEST):
            # An empty text is refused by some endpoints.
            some = [text or " " for text in texts[first : first + _TEXTS_PER_REQUEST]]
            answer = _ask(client, f"{url.rstrip('/')}/embeddings", {"model": model, "input": some})
            found += [each["embedding"] for each in sorted(answer["data"], key=lambda each: each["index"])]
    return unit(np.asarray(found, dtype=np.float32))


def _ask(client: Any, url: str, body: dict[str, Any]) -> dict[str, Any]:
    import httpx

    said = ""
    for attempt in range(_ATTEMPTS):
        if attempt:
            time.sleep(2.0 ** (attempt - 1))
        try:
            answer = client.post(url, json=body)
        except httpx.TransportError as error:
            said = str(error)
            continue
        if answer.is_success:
            found: dict[str, Any] = answer.json()
            return found
        said = f"{answer.status_code} {answer.text[:300]}"
        if answer.status_code not in (408, 409, 429) and answer.status_code < 500:
            break
    raise OperatorProblem("endpoint_failed", f"{url} returned no embeddings: {said}")


def write_grams(writer: ColumnWriter, texts: pl.Series) -> None:
    """Append which runs of characters each text has (ragged column ``grams``)."""
    from trellis_data.dedup import alphabet, kernels

    buffers = TextBuffers.of(texts)
    _, folded = alphabet.tables()
    flat, counts = kernels.grams(
        buffers.data, buffers.offsets, alphabet.blanks(), folded, GRAM_CHARACTERS, _GRAM_BITS
    )
    Ragged.append(writer, "grams", flat, counts)


def project_grams(scans: Sequence[Path], folder: Path, seed: int) -> int:
    """Write ``vectors`` of all rows into ``folder``: TF-IDF of the runs of characters, projected; their size.

    A run that is in few texts counts more (idf); each goes to a few of the numbers with a random sign, which
    keeps angles (sparse random projection, Achlioptas, 2003).
    """
    from trellis_data.dedup import kernels

    grams = Ragged(scans, "grams", np.uint32)
    seen = np.zeros(1 << _GRAM_BITS, dtype=np.int64)
    for _, piece in Column(scans, "grams", np.uint32).pieces():
        seen += np.bincount(piece, minlength=1 << _GRAM_BITS)
    weights = np.log((1 + len(grams)) / (1 + seen)).astype(np.float32)
    with ColumnWriter(folder) as writer:
        for first in range(0, len(grams), _BLOCK):
            flat, starts = grams.gather(np.arange(first, min(first + _BLOCK, len(grams))))
            vectors = kernels.project(flat, starts, weights, LEXICAL_SIZE, seed)
            writer.append("vectors", unit(vectors).astype(np.float16))
    return LEXICAL_SIZE
