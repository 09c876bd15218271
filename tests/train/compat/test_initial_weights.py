"""Weights that are drawn at random depend on the job's seed and on nothing else."""

from types import SimpleNamespace
from typing import Any

import torch
from trellis_train.compat.initial_weights import DRAWING, ENGINE, seeded


def draw(engine: Any) -> torch.Tensor:
    return torch.rand(4)


def test_the_seed_decides_what_is_drawn() -> None:
    build = seeded(draw)
    one, other = (SimpleNamespace(engine_config=SimpleNamespace(seed=seed)) for seed in (1, 2))

    first = build(one)
    torch.rand(7)

    assert torch.equal(build(one), first)
    assert not torch.equal(build(other), first)


def test_what_is_drawn_later_stays_as_it_was() -> None:
    torch.manual_seed(5)
    expected = torch.rand(4)
    torch.manual_seed(5)

    seeded(draw)(SimpleNamespace(engine_config=SimpleNamespace(seed=1)))

    assert torch.equal(torch.rand(4), expected)


def test_the_engine_draws_weights_where_we_seed() -> None:
    """What the patch replaces exists in the installed engine."""
    from importlib.util import find_spec
    from pathlib import Path

    spec = find_spec(ENGINE)
    assert spec is not None
    assert spec.origin is not None
    source = Path(spec.origin).read_text()
    assert all(f"def {name}(self" in source for name in DRAWING)
