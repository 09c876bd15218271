"""LoRA under the trainers that differ from each other, run for real: the adapter learns, the base stays.

SFT, GRPO and DPO with an adapter are proven beside their full forms.
"""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoConfig
from trellis_testing.adapters import base_name, expect_only_the_adapter_learned
from trellis_testing.engine_runs import EngineRun
from trellis_testing.exports import run_export
from trellis_testing.starter import Starter
from trellis_train.export.layout import read_layout
from trellis_train.export.shards import gather

from .preference import PreferenceRuns, first_and_last
from .reinforcement import PARAMS, ReinforcementRuns

pytestmark = [pytest.mark.training, pytest.mark.timeout(1800), pytest.mark.variant]

ADAPTER: dict[str, Any] = {"lora_rank": 8, "lora_alpha": 16, "learning_rate": 2e-3}
STEPS = 3


@pytest.fixture(scope="module")
def preferences(tmp_path_factory: pytest.TempPathFactory, starter: Starter) -> PreferenceRuns:
    return PreferenceRuns(tmp_path_factory.mktemp("adapters"), starter)


def run_with_adapter(runs: ReinforcementRuns, recipe: str) -> EngineRun:
    """Three steps of the recipe; the same recipe gives the same run."""
    params = {**PARAMS[recipe], "save_every": 0, "total_steps": STEPS, **ADAPTER}
    return runs.run(recipe, f"{recipe}-lora", **params)


@pytest.mark.parametrize("recipe", ["ppo", "remax"])
def test_an_rl_trainer_moves_the_adapter_alone(recipe: str, reinforcement: ReinforcementRuns) -> None:
    run = run_with_adapter(reinforcement, recipe)

    expect_only_the_adapter_learned(Path(run.checkpoint()["path"]), Path(run.spec.model.path))
    assert list(run.curve("critic/score/mean")) == list(range(1, STEPS + 1))
    # The rollout engine has the adapter of every step.
    weights = run.curve("training/rollout_importance_weight_mean").values()
    assert all(0.99 < weight < 1.01 for weight in weights)


@pytest.mark.proves("ppo")
def test_a_merged_adapter_of_an_rl_trainer_is_a_model_of_its_own(
    reinforcement: ReinforcementRuns, starter: Starter, tmp_path: Path
) -> None:
    run = run_with_adapter(reinforcement, "ppo")

    done = run_export(
        tmp_path,
        Path(run.checkpoint()["path"]),
        base=starter.taught,
        step=STEPS,
        engine=run.spec.engine,
    )

    assert done.exit_code == 0, done.log
    made, base = (load_file(path / "model.safetensors") for path in (done.output, starter.taught))
    assert made.keys() == base.keys()
    # The merged product of the two matrices, and nothing else.
    state = gather(read_layout(Path(run.checkpoint()["path"])).shards)
    name = next(name for name in state if "lora_B" in name)
    scale = ADAPTER["lora_alpha"] / ADAPTER["lora_rank"]
    product = state[name] @ state[name.replace("lora_B", "lora_A")] * scale
    weight = base_name(name.split(".lora_B")[0]) + ".weight"
    # Written in the type that the base's configuration names, computed in single precision.
    named = AutoConfig.from_pretrained(starter.taught).dtype
    assert made[weight].dtype == named
    torch.testing.assert_close(made[weight], (base[weight] + product).to(named))


@pytest.mark.parametrize(
    ("recipe", "measure", "choices"),
    [
        ("kto", "eval_rewards/margins", {}),
        # Of its loss the supervised term is most, unless it is told otherwise.
        ("orpo", "eval_rewards/margins", {"lambda": 1.0, "learning_rate": 1e-2}),
        ("simpo", "eval_rewards/margins", {}),
        ("reward_model", "eval_accuracy", {}),
    ],
)
def test_a_preference_trainer_learns_with_an_adapter(
    recipe: str, measure: str, choices: dict[str, Any], preferences: PreferenceRuns
) -> None:
    run = preferences.get(f"{recipe}_lora", recipe, **{**ADAPTER, **choices})
    before, after = first_and_last(run, measure)

    assert after > before + 0.1
    adapter = load_file(Path(run.checkpoint()["path"], "lora_adapter", "adapter_model.safetensors"))
    assert all(bool(value.any()) for name, value in adapter.items() if "lora_B" in name)
