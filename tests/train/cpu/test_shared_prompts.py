"""verl's engine with shared prompts and without masks: the losses and gradients of verl's own passes."""

import json
from pathlib import Path

import pytest
import torch
from trellis_testing.ranks import run_on_two_ranks
from trellis_train.cpu.shared_prompts import count_tokens, without_mask
from trellis_train.starter.model import write_model

pytestmark = [pytest.mark.training, pytest.mark.timeout(300)]
#: Makes one update's gradients with an engine of two trainers, as verl passes the rows and as we do; prints
#: how far they are apart, in parts of the largest, and how the rows were passed.
TWO_WAYS = """
import json, sys
import torch
import torch.distributed as dist
import verl
from trellis_train.cpu import shared_prompts as passes
from verl.trainer.config import CheckpointConfig
from verl.utils import tensordict_utils as tu
from verl.workers.config import FSDPEngineConfig, FSDPOptimizerConfig, HFModelConfig
from verl.workers.engine.fsdp.transformer_impl import FSDPEngineWithLMHead
from verl.workers.utils.padding import no_padding_2_padding

folder, fewest_parameters, prompts = sys.argv[1], int(sys.argv[2]), json.loads(sys.argv[3])
from trellis_train.cpu import sharding_units
sharding_units.FEWEST_PARAMETERS = fewest_parameters
dist.init_process_group("gloo")
model = HFModelConfig(path=folder, override_config={"attn_implementation": "sdpa"}, use_remove_padding=False,
                      enable_gradient_checkpointing=False)
full = {"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"}
settings = FSDPEngineConfig(strategy="fsdp2", model_dtype="fp32", mixed_precision=full,
                            use_torch_compile=False)
engine = FSDPEngineWithLMHead(model, settings, FSDPOptimizerConfig(lr=1e-3, total_training_steps=1),
                              CheckpointConfig())
engine.initialize()

torch.manual_seed(dist.get_rank())
prompts = [torch.tensor(row) for row in prompts]
responses = [torch.randint(1, 250, (2 + row % 5,)) for row in range(len(prompts))]
nest = lambda rows: torch.nested.as_nested_tensor(rows, layout=torch.jagged)
rows = [torch.cat(pair) for pair in zip(prompts, responses)]
columns = {
    "prompts": nest(prompts), "responses": nest(responses), "input_ids": nest(rows),
    "position_ids": nest([torch.arange(len(row)) for row in rows]),
    "loss_mask": nest([torch.ones(len(row)) for row in responses]),
}

def loss_of(model_output, data, dp_group):
    values = (model_output[name] for name in ("log_probs", "entropy"))
    log_probs, entropies = (no_padding_2_padding(each, data) for each in values)
    weights = torch.linspace(-1, 1, log_probs.numel()).view_as(log_probs)
    return (log_probs * weights).sum() + 0.1 * entropies.sum(), {}

def update():
    data = tu.get_tensordict(dict(columns), {
        "temperature": 0.7, "calculate_entropy": True, "use_dynamic_bsz": False,
        "micro_batch_size_per_gpu": 4, "use_remove_padding": False, "use_fused_kernels": False,
    })
    with engine.train_mode():
        engine.optimizer_zero_grad()
        output = engine.forward_backward_batch(data, loss_of)
        return output["loss"], [weight.grad.full_tensor().clone() for weight in engine.module.parameters()]

shared = []
step_with = passes.step_with_shared_prompts
passes.step_with_shared_prompts = lambda *args: shared.append(1) or step_with(*args)
losses, gradients = update()
for name in ("forward_step", "prepare_model_inputs"):
    setattr(FSDPEngineWithLMHead, name, getattr(FSDPEngineWithLMHead, name).__wrapped__)
their_losses, their_gradients = update()
apart = max(float((ours - theirs).abs().max() / theirs.abs().max())
            for ours, theirs in zip(gradients, their_gradients))
units = sum(type(module).__name__.startswith("FSDP") for module in engine.module.modules())
if dist.get_rank() == 0:
    loss = max(abs(our - their) / abs(their) for our, their in zip(losses, their_losses))
    print(json.dumps({"gradients": apart, "losses": loss, "shared": len(shared), "units": units}))
dist.destroy_process_group()
"""
GROUPS = [[7, 8, 9]] * 4 + [[3, 4, 5, 6, 7]] * 4
ALONE = [[row + 1] * (2 + row % 3) for row in range(8)]
#: The starter model has four layers of 197 k parameters.
LAYERS = 4


def run_both_ways(folder: Path, prompts: list[list[int]], fewest_parameters: int) -> dict[str, float]:
    write_model(folder, seed=1)
    platform = {"VERL_PLATFORM": "cpu", "VERL_ENGINE_DEVICE": "cuda", "OMP_NUM_THREADS": "1"}
    arguments = (str(fewest_parameters), json.dumps(prompts))
    printed = run_on_two_ranks(TWO_WAYS, folder, *arguments, environment=platform)
    found: dict[str, float] = json.loads(printed.splitlines()[-1])
    return found


@pytest.mark.parametrize(
    ("prompts", "fewest_parameters", "shared", "units"),
    [
        pytest.param(GROUPS, 10**6, 2, 1, id="groups, small layers together"),
        pytest.param(GROUPS, 0, 2, LAYERS + 1, id="groups, every layer for itself"),
        pytest.param(ALONE, 10**6, 0, 1, id="no prompt twice"),
    ],
)
def test_losses_and_gradients_are_those_of_verl(
    tmp_path: Path, prompts: list[list[int]], fewest_parameters: int, shared: int, units: int
) -> None:
    found = run_both_ways(tmp_path, prompts, fewest_parameters)

    assert (found["shared"], found["units"]) == (shared, units)
    assert found["losses"] < 1e-5
    assert found["gradients"] < 1e-4


def test_a_mask_of_row_ends_is_left_out_and_positions_count_on() -> None:
    inputs = {
        "input_ids": torch.ones(2, 3, dtype=torch.long),
        "attention_mask": torch.tensor([[1, 1, 1], [1, 0, 0]]),
        "position_ids": torch.tensor([[0, 1, 2], [0, 0, 0]]),
    }

    found = without_mask(inputs)

    assert found["attention_mask"] is None
    assert found["position_ids"].tolist() == [[0, 1, 2], [0, 1, 2]]
    assert found["input_ids"] is inputs["input_ids"]


@pytest.mark.parametrize(
    "positions", [[[0, 1, 2], [5, 0, 0]], None, [[[0, 1, 2], [0, 0, 0]]]], ids=["others", "none", "of axes"]
)
def test_positions_that_do_not_count_tokens_keep_their_mask(positions: list[object] | None) -> None:
    mask = torch.tensor([[1, 1, 1], [1, 0, 0]])
    given = None if positions is None else torch.tensor(positions)

    found = without_mask({"attention_mask": mask, "position_ids": given})

    assert found["attention_mask"] is mask
    assert found["position_ids"] is given


@pytest.mark.parametrize(("last", "counts"), [([0, 1, 2], True), ([0, 0, 1], False)])
def test_rows_packed_from_others_do_not_count_tokens(last: list[int], counts: bool) -> None:
    rows = [torch.tensor([0, 1]), torch.tensor(last)]

    assert count_tokens(torch.nested.as_nested_tensor(rows, layout=torch.jagged)) is counts
