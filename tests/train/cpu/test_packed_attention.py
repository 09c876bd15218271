"""Attention on packed rows: equal to transformers' own with a mask, whatever the mask means."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import AttentionInterface, AttentionMaskInterface, AutoModelForCausalLM
from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS
from trellis_train.cpu.packed_attention import SDPA, PackedAttention, find_bounds
from trellis_train.starter.model import write_model

LENGTHS = (5, 1, 9, 3)
WINDOW = 4
PACKED = "packed_sdpa_of_a_test"


def block_mask(*lengths: int) -> Tensor:
    blocks = [torch.ones(each, each, dtype=torch.bool).tril() for each in lengths]
    return torch.block_diag(*blocks).bool()[None, None]


def test_bounds_of_causal_sequences_are_found() -> None:
    assert find_bounds(block_mask(*LENGTHS)) == [0, 5, 6, 15, 18]
    assert find_bounds(block_mask(7)) == [0, 7]


@pytest.mark.parametrize(
    "mask",
    [
        block_mask(6).logical_not(),
        block_mask(6) & ~block_mask(6).tril(-WINDOW),
        torch.ones(1, 1, 6, 6, dtype=torch.bool),
        block_mask(6).repeat(2, 1, 1, 1),
        block_mask(6)[:, :, :3],
        block_mask(6).float(),
    ],
    ids=["nothing is seen", "window", "everything is seen", "two rows", "cache", "added numbers"],
)
def test_masks_of_another_meaning_are_left_alone(mask: Tensor) -> None:
    assert find_bounds(mask) is None


@pytest.fixture
def packed() -> PackedAttention:
    """Registered for the test under a name of its own."""
    attention = PackedAttention(ALL_ATTENTION_FUNCTIONS[SDPA])
    AttentionInterface.register(PACKED, attention)
    AttentionMaskInterface.register(PACKED, ALL_MASK_ATTENTION_FUNCTIONS[SDPA])
    return attention


def test_a_packed_row_has_the_logits_and_gradients_of_sdpa(packed: PackedAttention, tmp_path: Path) -> None:
    write_model(tmp_path, seed=1)
    places = torch.cat([torch.arange(each) for each in LENGTHS])[None]
    tokens = torch.randint(0, 50, places.shape, generator=torch.Generator().manual_seed(1))
    found = []

    for name in (SDPA, PACKED):
        model = AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation=name)
        logits = model(input_ids=tokens, position_ids=places, use_cache=False).logits
        logits.square().mean().backward()
        found.append((logits.detach(), [weight.grad for weight in model.parameters()]))

    (logits, gradients), (our_logits, our_gradients) = found
    assert packed.bounds == [0, 5, 6, 15, 18]
    torch.testing.assert_close(our_logits, logits)
    assert all(
        torch.allclose(ours, theirs, atol=1e-6) for ours, theirs in zip(our_gradients, gradients, strict=True)
    )


def test_padded_rows_have_the_logits_of_sdpa(packed: PackedAttention, tmp_path: Path) -> None:
    write_model(tmp_path, seed=1)
    tokens = torch.randint(0, 50, (2, 6), generator=torch.Generator().manual_seed(1))
    padding = torch.tensor([[0, 0, 1, 1, 1, 1], [1] * 6])

    theirs, ours = (
        AutoModelForCausalLM.from_pretrained(tmp_path, attn_implementation=name)(
            input_ids=tokens, attention_mask=padding, use_cache=False
        ).logits
        for name in (SDPA, PACKED)
    )

    assert packed.bounds is None
    torch.testing.assert_close(ours[padding.bool()], theirs[padding.bool()])
