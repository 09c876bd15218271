"""RL recipes on a pretrained model: held-out prompts are answered in the form that they ask for."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trellis_recipes.catalogue import get_recipe, list_recipes
from trellis_testing.engine_runs import EngineRun, run_engine
from trellis_testing.pretrained import FORM, Pretrained
from trellis_testing.proof_report import report_proof

pytestmark = [pytest.mark.training, pytest.mark.timeout(2400)]
STEPS = 8
COMMON: dict[str, Any] = {
    "total_steps": STEPS,
    "batch_size": 8,
    "group_size": 4,
    "max_prompt_length": 128,
    "max_response_length": 24,
    "learning_rate": 2e-5,
    "validate_before": False,
    "validate_every": STEPS,
    "save_every": 0,
    "rewards": [{"name": "regex", "weight": 1.0, "options": {"pattern": FORM}}],
}
#: Of held-out prompts answered in the form, against a run with learning rate 0.
LEAST_GAIN = 0.2
#: Dynamic sampling drops prompts whose responses are all alike. At the beginning nearly all are wrong, so the
#: first step samples many batches; after these steps nearly all are right.
OF_RECIPE: dict[str, dict[str, Any]] = {"dapo": {"total_steps": 5, "max_generation_batches": 40}}
RECIPES = [recipe.id for recipe in list_recipes() if recipe.family == "rl"]


class Runs:
    """Runs by name, each made once, on one Ray cluster."""

    def __init__(self, folder: Path, pretrained: Pretrained, join_ray: Callable[[], dict[str, str]]) -> None:
        self._folder, self._pretrained, self._join_ray = folder, pretrained, join_ray
        self._done: dict[str, EngineRun] = {}

    def get(self, name: str, recipe: str, **params: Any) -> EngineRun:
        if name not in self._done:
            # One update a step; OPO and GPG know no other way.
            if any(each.name == "mini_batch_size" for each in get_recipe(recipe).parameters):
                params["mini_batch_size"] = COMMON["batch_size"]
            job = self._pretrained.compose(
                self._folder / name, recipe, self._pretrained.forms, {**COMMON, **params}
            )
            self._done[name] = run_engine(job, environment=self._join_ray(), timeout_s=1800)
        return self._done[name]

    def control(self) -> EngineRun:
        """GRPO with learning rate 0; the weights stay, so one step is enough."""
        return self.get("control", "grpo", learning_rate=0.0, total_steps=1, validate_every=1)


@pytest.fixture(scope="module")
def runs(
    pretrained: Pretrained, join_ray: Callable[[], dict[str, str]], tmp_path_factory: pytest.TempPathFactory
) -> Runs:
    return Runs(tmp_path_factory.mktemp("pretrained-rl"), pretrained, join_ray)


@pytest.mark.parametrize("recipe", RECIPES)
def test_the_held_out_reward_rises(recipe: str, runs: Runs) -> None:
    own = OF_RECIPE.get(recipe, {})
    steps = own.get("total_steps", STEPS)
    control, run = runs.control(), runs.get(recipe, recipe, **own, validate_every=steps)

    before, after = control.held_out_accuracy(1), run.held_out_accuracy(steps)
    report_proof(recipe, measure="held-out reward", control=before, trained=after, seconds=run.seconds)
    assert list(run.curve("critic/score/mean")) == list(range(1, steps + 1))
    assert after > before + LEAST_GAIN


@pytest.mark.proves("grpo")
def test_an_adapter_learns_it_too(runs: Runs) -> None:
    control = runs.control()
    run = runs.get("grpo_lora", "grpo", lora_rank=16, lora_alpha=32, learning_rate=2e-4)

    before, after = control.held_out_accuracy(1), run.held_out_accuracy(STEPS)
    report_proof(
        "grpo (adapter)", measure="held-out reward", control=before, trained=after, seconds=run.seconds
    )
    assert after > before + LEAST_GAIN
