"""SimHash against all pairs compared one by one."""

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from trellis_data.dedup.alphabet import tables
from trellis_data.dedup.kernels import simhashes
from trellis_data.dedup.simhash import SimHashDuplicates, SimHashParams, blocks
from trellis_data.dedup.sources import TextBuffers
from trellis_data.operator import Context
from trellis_testing.global_operators import run_global
from trellis_tools.bench.data.corpus import chunks


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("distance", [0, 1, 3, 5, 7])
def test_no_pair_of_close_fingerprints_is_missed(language: str, distance: int, tmp_path: Path) -> None:
    import polars as pl

    ((documents, copies),) = list(chunks(2000, 3, language))
    texts = TextBuffers.of(pl.Series(documents.to_pylist()))
    prints = simhashes(texts.data, texts.offsets, *tables(), 3)

    ran = run_global(
        SimHashDuplicates(SimHashParams(distance=distance), Context()),
        pa.table({"text": documents}),
        tmp_path,
    )

    differing = np.array([[(int(a) ^ int(b)).bit_count() for b in prints] for a in prints[:200]])
    for row, near in enumerate(differing):
        close = np.flatnonzero(near <= distance)
        assert ran.keep[close].sum() <= 1 or ran.keep[row]
        assert not ran.keep[close[close > row]].any() or not ran.keep[row]
    assert not ran.keep[copies.copies[copies.similarity == 1.0]].any()


@pytest.mark.parametrize("distance", range(8))
def test_blocks_cover_all_bits_once(distance: int) -> None:
    bits = [bit for low, high in blocks(distance) for bit in range(low, high)]

    assert bits == list(range(64))
    assert len(blocks(distance)) == distance + 1
