"""Weights that two trainers gather together are those that verl gathers one by one."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoModelForCausalLM
from trellis_testing.ranks import run_on_two_ranks
from trellis_train.cpu.weight_gathering import merged_weights
from trellis_train.starter.model import write_model

#: Prints how many weights an engine of two trainers hands out, how many differ from verl's, how many messages
#: there were, and whether weights of uneven and of few rows come back as they were.
BOTH_WAYS = """
import json, sys
import torch
import torch.distributed as dist
import verl
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor
from trellis_train.cpu import weight_gathering
from verl.trainer.config import CheckpointConfig
from verl.workers.config import FSDPEngineConfig, FSDPOptimizerConfig, HFModelConfig
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead

weight_gathering.MOST_ELEMENTS = int(sys.argv[2])
dist.init_process_group("gloo")
model = HFModelConfig(path=sys.argv[1], override_config={"attn_implementation": "sdpa"},
                      use_remove_padding=False, enable_gradient_checkpointing=False)
full = {"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"}
settings = FSDPEngineConfig(strategy="fsdp2", model_dtype="fp32", mixed_precision=full,
                            use_torch_compile=False)
engine = FSDPEngineWithLMHead(model, settings, FSDPOptimizerConfig(lr=1e-3, total_training_steps=1),
                              CheckpointConfig())
engine.initialize()

messages = []
gather = dist.all_gather_into_tensor
dist.all_gather_into_tensor = lambda *args, **kwargs: messages.append(1) or gather(*args, **kwargs)
ours = dict(engine.get_per_tensor_param()[0])
dist.all_gather_into_tensor = gather
theirs = dict(type(engine).get_per_tensor_param.__wrapped__(engine)[0])
different = [name for name in theirs if not torch.equal(ours[name], theirs[name])]

mesh = init_device_mesh("cpu", (2,))
plain = {"uneven": torch.randn(5, 3), "one row": torch.randn(1, 4), "vector": torch.randn(7),
         "half": torch.randn(4, 2).half()}
for weight in plain.values():
    dist.broadcast(weight, 0)
sharded = {name: distribute_tensor(weight, mesh, [Shard(0)]) for name, weight in plain.items()}
sharded["replicated"] = distribute_tensor(plain["vector"], mesh, [Replicate()])
whole = weight_gathering.gather_together(sharded)
restored = [name for name in plain if torch.equal(whole[name], plain[name])]
kept = whole["replicated"] is sharded["replicated"]
if dist.get_rank() == 0:
    print(json.dumps({"weights": len(ours), "missing": sorted(theirs.keys() ^ ours.keys()),
                      "different": different, "messages": len(messages), "restored": restored,
                      "kept": kept, "is_tidy": "state_dict" not in vars(engine.module)}))
dist.destroy_process_group()
"""


def adapted_model(folder: Path) -> Any:
    write_model(folder, seed=1)
    base = AutoModelForCausalLM.from_pretrained(folder)
    model = get_peft_model(
        base, LoraConfig(task_type="CAUSAL_LM", r=4, lora_alpha=8, target_modules="all-linear")
    )
    for name, weight in model.named_parameters():
        if "lora_B" in name:  # zero at first: the adapter would add nothing
            torch.nn.init.normal_(weight, std=0.1)
    return model


def test_an_adapter_is_added_to_the_weights_of_its_base(tmp_path: Path) -> None:
    model = adapted_model(tmp_path)
    before = {name: weight.clone() for name, weight in model.state_dict().items()}

    merged = {name: weight.detach().clone() for name, weight in merged_weights(model)}

    assert all(torch.equal(before[name], weight) for name, weight in model.state_dict().items())
    expected = model.merge_and_unload().state_dict()
    assert merged.keys() == expected.keys()
    for name, weight in expected.items():
        torch.testing.assert_close(merged[name], weight, msg=name)


def test_an_adapter_on_anything_but_linear_layers_is_refused(tmp_path: Path) -> None:
    write_model(tmp_path, seed=1)
    base = AutoModelForCausalLM.from_pretrained(tmp_path)
    config = LoraConfig(task_type="CAUSAL_LM", r=4, target_modules=["embed_tokens"])

    with pytest.raises(ValueError, match="not a linear layer"):
        dict(merged_weights(get_peft_model(base, config)))


@pytest.mark.training
@pytest.mark.timeout(300)
def test_they_are_those_of_verl_in_few_messages(tmp_path: Path) -> None:
    write_model(tmp_path, seed=1)
    platform = {"VERL_PLATFORM": "cpu", "VERL_ENGINE_DEVICE": "cuda", "OMP_NUM_THREADS": "1"}

    # A rank has 427,584 elements.
    printed = run_on_two_ranks(BOTH_WAYS, tmp_path, str(10**5), environment=platform)

    found = json.loads(printed.splitlines()[-1])
    assert found["weights"] > 40
    assert (found["missing"], found["different"]) == ([], [])
    assert found["messages"] == 5
    assert found["restored"] == ["uneven", "one row", "vector", "half"]
    assert found["kept"]
    assert found["is_tidy"]
