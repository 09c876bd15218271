"""Stores of samples to read."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest
from trellis_contracts.evaluation import Sample
from trellis_evaluation.samples.store import SampleStore, open_store, write_store


@pytest.fixture
def written(tmp_path: Path) -> Iterable[Callable[..., SampleStore]]:
    """Writes samples into a file of that name and opens it."""
    opened: list[SampleStore] = []

    def write(samples: Iterable[Sample], name: str = "a") -> SampleStore:
        write_store(tmp_path / f"{name}.sqlite", samples)
        opened.append(open_store(tmp_path / f"{name}.sqlite"))
        return opened[-1]

    yield write
    for store in opened:
        store.close()
