"""Logits of responses with each prompt computed once: those of whole rows, and their gradients."""

from typing import Any

import pytest
import torch
import transformers
from trellis_train.cpu.prompts import SharedPrompts
from trellis_train.cpu.shared_prefix_forward import can_share_prompts, response_logits

SIZES = {
    "vocab_size": 50,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
}
#: Prompts and responses of several lengths; the first, the second and the last share theirs.
ROWS = [
    ([5, 6, 7, 8], [1, 2, 3]),
    ([5, 6, 7, 8], [4]),
    ([9, 10], [11, 12, 13, 14, 15]),
    ([5, 6, 7, 8], [2, 1, 3, 4]),
]


def make(kind: str, **settings: Any) -> Any:
    config = getattr(transformers, f"{kind}Config")(**SIZES, **settings)
    torch.manual_seed(0)
    return getattr(transformers, f"{kind}ForCausalLM")(config)


def logits_of_whole_rows(model: Any) -> torch.Tensor:
    parts = []
    for prompt, response in ROWS:
        logits = model(input_ids=torch.tensor([prompt + response])).logits[0]
        parts.append(logits[len(prompt) - 1 : -1])
    return torch.cat(parts)


def logits_with_shared_prompts(model: Any) -> torch.Tensor:
    prompts, responses = zip(*ROWS, strict=True)
    shared = SharedPrompts.find(list(map(torch.tensor, prompts)), list(map(torch.tensor, responses)))
    return response_logits(model, model.config, shared)


def gradients(model: Any, logits: torch.Tensor) -> list[torch.Tensor]:
    model.zero_grad()
    weights = torch.linspace(-1, 1, logits.numel()).view_as(logits)
    (logits.log_softmax(-1) * weights).sum().backward()
    return [parameter.grad.clone() for parameter in model.parameters()]


@pytest.mark.parametrize("kind", ["Qwen2", "Llama", "Qwen3", "Phi3"])
def test_logits_and_gradients_are_those_of_whole_rows(kind: str) -> None:
    model = make(kind, **({"pad_token_id": 0} if kind == "Phi3" else {}))
    assert can_share_prompts(model, model.config)

    ours, theirs = logits_with_shared_prompts(model), logits_of_whole_rows(model)

    torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)
    for our, their in zip(gradients(model, ours), gradients(model, theirs), strict=True):
        torch.testing.assert_close(our, their, rtol=1e-4, atol=1e-5)


def test_responses_of_one_token_need_the_prompts_only() -> None:
    model = make("Qwen2")
    shared = SharedPrompts.find([torch.tensor([1, 2]), torch.tensor([1, 2])], [torch.tensor([3])] * 2)

    logits = response_logits(model, model.config, shared)

    torch.testing.assert_close(logits, model(torch.tensor([[1, 2]])).logits[:, -1].expand(2, -1))


def test_adapters_are_passed_through() -> None:
    peft = pytest.importorskip("peft")
    model = peft.get_peft_model(make("Qwen2"), peft.LoraConfig(r=4, target_modules=["q_proj", "v_proj"]))

    assert can_share_prompts(model, model.config)
    torch.testing.assert_close(logits_with_shared_prompts(model), logits_of_whole_rows(model))


def test_models_that_do_not_keep_all_keys_are_not_asked() -> None:
    windows = make("Qwen2", use_sliding_window=True, sliding_window=4, max_window_layers=1)
    checkpointing = make("Qwen2")
    checkpointing.gradient_checkpointing_enable()

    assert not can_share_prompts(windows, windows.config)
    assert not can_share_prompts(checkpointing, checkpointing.config)
