"""The memory estimate against real models: counts exactly, sizes in memory by measurement."""

import json
import subprocess
import sys
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM
from transformers.models.auto.configuration_auto import CONFIG_MAPPING
from trellis_contracts.recipe import Engine
from trellis_recipes.memory import formulas
from trellis_recipes.memory.architecture import read_architecture
from trellis_recipes.memory.estimate import estimate_memory
from trellis_recipes.memory.schemas import MemoryEstimate

pytestmark = pytest.mark.training
SMALL: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 176,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 260,
    "tie_word_embeddings": False,
}
CASES: list[tuple[str, dict[str, Any]]] = [
    ("qwen2", {}),
    ("qwen2", {"tie_word_embeddings": True}),
    ("qwen2", {"num_key_value_heads": 4}),
    ("llama", {}),
    ("llama", {"tie_word_embeddings": True, "num_key_value_heads": 1}),
    ("llama", {"attention_bias": True, "mlp_bias": True}),
    ("llama", {"head_dim": 32}),
    ("mistral", {"head_dim": 32}),
    ("mistral", {"num_key_value_heads": 1}),
    ("qwen3", {"head_dim": 32}),
    ("qwen3", {"attention_bias": True, "tie_word_embeddings": True}),
    ("gemma", {"head_dim": 32, "tie_word_embeddings": True}),
    ("phi3", {"pad_token_id": 0}),
    ("mixtral", {"num_local_experts": 4, "num_experts_per_tok": 2}),
    (
        "qwen2_moe",
        {
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 48,
            "shared_expert_intermediate_size": 80,
            "decoder_sparse_step": 2,
        },
    ),
    (
        "qwen3_moe",
        {
            "num_experts": 4,
            "num_experts_per_tok": 2,
            "moe_intermediate_size": 48,
            "head_dim": 32,
            "mlp_only_layers": [0],
        },
    ),
]
#: About 20 million parameters, of which the vocabulary is a small part.
MEASURED: dict[str, Any] = {
    "model_type": "qwen2",
    "hidden_size": 384,
    "intermediate_size": 1536,
    "num_hidden_layers": 8,
    "num_attention_heads": 6,
    "num_key_value_heads": 2,
    "vocab_size": 4096,
    "tie_word_embeddings": True,
}
SEQUENCES, LENGTH = 8, 256
#: Peaks of the allocator and of single operations are not in the formulas.
LOWEST, HIGHEST = 0.6, 1.35


@pytest.mark.parametrize(("family", "changes"), CASES)
def test_the_count_is_that_of_the_real_model(family: str, changes: dict[str, Any]) -> None:
    config = CONFIG_MAPPING[family](**{**SMALL, **changes})
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(config)

    counted = read_architecture(json.loads(config.to_json_string(use_diff=False))).parameters

    assert counted == sum(parameter.numel() for parameter in model.parameters())


def estimate(**training: Any) -> MemoryEstimate:
    """Of plain training in full precision on one CPU, as TRL does it."""
    config = {
        "dtype": "float32",
        "bf16": False,
        "max_length": LENGTH,
        "per_device_train_batch_size": SEQUENCES,
        "precompute_ref_log_probs": True,  # no reference beside it
        **training,
    }
    return estimate_memory(
        read_architecture(MEASURED),
        engine=Engine.TRL,
        recipe="kto",  # one text a row
        config=config,
        platform="cpu",
        gpus=1,
        env={},
    )


def sizes(found: MemoryEstimate) -> dict[str, int]:
    return {part.name: part.bytes for part in found.phases[0].parts}


def build() -> Any:
    torch.manual_seed(0)
    config = CONFIG_MAPPING["qwen2"](**{key: value for key, value in MEASURED.items() if key != "model_type"})
    return AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")


def step(model: Any, optimizer: torch.optim.Optimizer | None = None) -> None:
    tokens = torch.randint(0, MEASURED["vocab_size"], (SEQUENCES, LENGTH))
    model(input_ids=tokens, labels=tokens, use_cache=False).loss.backward()
    if optimizer is not None:
        optimizer.step()


def test_weights_gradients_and_optimizer_are_as_large_as_estimated() -> None:
    model = build()
    optimizer = torch.optim.AdamW(model.parameters())
    step(model, optimizer)

    parts = sizes(estimate())

    weights = list(model.parameters())
    states = [value for state in optimizer.state.values() for value in state.values() if value.dim()]
    assert parts["weights"] == sum(weight.nbytes for weight in weights)
    assert parts["gradients"] == sum(weight.grad.nbytes for weight in weights)
    assert parts["optimizer"] == sum(state.nbytes for state in states)


@pytest.mark.parametrize("is_checkpointed", [False, True])
def test_what_is_kept_for_the_backward_pass_is_about_as_large_as_estimated(is_checkpointed: bool) -> None:
    model = build()
    own = {weight.untyped_storage().data_ptr() for weight in model.parameters()}
    kept: dict[int, torch.UntypedStorage] = {}

    def note(tensor: torch.Tensor) -> torch.Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            kept[storage.data_ptr()] = storage
        return tensor

    if is_checkpointed:
        model.train()
        model.gradient_checkpointing_enable({"use_reentrant": False})
    tokens = torch.randint(0, MEASURED["vocab_size"], (SEQUENCES, LENGTH))
    with torch.autograd.graph.saved_tensors_hooks(note, lambda tensor: tensor):
        model(input_ids=tokens, labels=tokens, use_cache=False)
    measured = sum(storage.nbytes() for storage in kept.values())

    parts = sizes(estimate(gradient_checkpointing=is_checkpointed))

    # The gradient of the logits, and the block that is computed anew, come with the backward pass.
    anew = formulas.activation_bytes_per_token(read_architecture(MEASURED), 4) * SEQUENCES * LENGTH
    expected = parts["activations"] - anew * is_checkpointed + parts["logits"] * 2 // 3
    assert LOWEST < measured / expected < HIGHEST, (measured, expected)


MEASURE = """
import json, re, sys
sys.path.insert(0, sys.argv[1])
import test_against_torch as case
import torch
def peak(name):
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024
torch.set_num_threads(2)
case.torch.ones(64, 64, requires_grad=True).matmul(torch.ones(64, 64)).sum().backward()
before = peak("VmRSS")
open("/proc/self/clear_refs", "w").write("5")
model = case.build()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    optimizer.zero_grad(set_to_none=False)
    case.step(model, optimizer)
print(json.dumps({"before": before, "peak": peak("VmHWM")}))
"""


def test_a_training_step_grows_the_process_by_about_the_estimate() -> None:
    folder = str(__file__).rpartition("/")[0]
    done = subprocess.run(
        [sys.executable, "-c", MEASURE, folder], capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    measured = found["peak"] - found["before"]

    parts = sizes(estimate())

    expected = sum(size for name, size in parts.items() if name not in {"runtime", "reference"})
    assert LOWEST < measured / expected < HIGHEST, (measured, expected)
