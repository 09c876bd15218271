"""vLLM's LoRA on a CPU: tokens of the base model in a batch with tokens of adapters."""

import torch
from trellis_train.compat.vllm_cpu import passing_over_the_base
from vllm.lora.ops.torch_ops import lora_ops

SLOTS, RANK, WIDTH = 2, 3, 4


def shrink(function: object) -> torch.Tensor:
    """Of a token with the first adapter, one of the base model, and one with the last adapter."""
    assert callable(function)
    output = torch.full((3, RANK), 7.0)
    weights = torch.stack([torch.full((RANK, WIDTH), float(slot + 1)) for slot in range(SLOTS)])
    function(torch.ones(3, WIDTH), weights, output, torch.tensor([0, -1, 1]), 0.5)
    return output


def test_vllm_still_reads_the_last_slot_for_the_base_model() -> None:
    original = getattr(lora_ops.bgmv_shrink, "__wrapped__", lora_ops.bgmv_shrink)

    assert shrink(original)[1].tolist() == [4.0] * RANK


def test_tokens_of_the_base_model_get_nothing_of_any_adapter() -> None:
    original = getattr(lora_ops.bgmv_shrink, "__wrapped__", lora_ops.bgmv_shrink)

    found = shrink(passing_over_the_base(original))

    assert found.tolist() == [[2.0] * RANK, [0.0] * RANK, [4.0] * RANK]
