"""What a run writes: the size of its checkpoints, and how many lie there at once."""

from typing import Any

import pytest
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.memory.disk import DiskUse, count_saves, count_steps, estimate_disk
from trellis_recipes.memory.reference_models import reference_models
from trellis_recipes.preset_sizes import compose_preset

MODEL = reference_models()["7B"]
COUNT = 7_615_616_512


def estimate(recipe: str, *, saves: int | None = 1, keep: int | None = None, **params: Any) -> DiskUse:
    found = get_recipe(recipe)
    preset = next(each for each in found.presets if each.id == "gpu-80gb")
    composed = compose_preset(found, preset, params)
    return estimate_disk(
        MODEL,
        engine=composed.engine,
        recipe=recipe,
        config=composed.config,
        platform="cuda",
        gpus=1,
        env=composed.env,
        parameters=COUNT,
        saves=saves,
        keep=keep,
    )


def test_a_checkpoint_of_verl_holds_weights_twice_and_the_optimizer() -> None:
    for recipe in ("sft", "grpo"):
        assert estimate(recipe).checkpoint_bytes == (4 + 8 + 4) * COUNT


def test_a_critic_has_a_checkpoint_beside_the_policys() -> None:
    assert estimate("ppo").checkpoint_bytes == (4 + 8 + 4) * COUNT + (4 + 8) * COUNT


def test_a_checkpoint_of_trl_holds_weights_and_optimizer() -> None:
    assert estimate("dpo").checkpoint_bytes == (4 + 8) * COUNT


def test_an_adapter_is_small_in_a_checkpoint_of_trl_and_beside_its_base_in_one_of_verl() -> None:
    adapter = MODEL.count_lora(32) * 4

    assert estimate("dpo", lora_rank=32).checkpoint_bytes == 3 * adapter
    assert estimate("sft", lora_rank=32).checkpoint_bytes == 2 * COUNT + 3 * adapter


@pytest.mark.parametrize(
    ("saves", "keep", "count"),
    [(10, 2, 4), (3, 2, 3), (10, None, 10), (None, 2, 4), (None, None, None)],
)
def test_the_last_ones_the_best_and_the_one_being_written_lie_there(
    saves: int | None, keep: int | None, count: int | None
) -> None:
    use = estimate("sft", saves=saves, keep=keep)

    assert use.checkpoints == count
    assert use.total_bytes == (None if count is None else count * use.checkpoint_bytes)


@pytest.mark.parametrize(
    ("total_steps", "save_every", "saves"),
    [(100, 20, 5), (101, 20, 6), (100, 0, 1), (None, 20, None), (None, 0, 1)],
)
def test_a_run_saves_at_its_interval_and_at_the_end(
    total_steps: int | None, save_every: int, saves: int | None
) -> None:
    assert count_saves(total_steps=total_steps, save_every=save_every) == saves


def test_the_steps_of_a_run_are_given_or_follow_from_its_rows() -> None:
    assert count_steps({"total_steps": 7, "epochs": 3}, rows=100, batch=10) == 7
    assert count_steps({"total_steps": None, "epochs": 3}, rows=105, batch=10) == 30
    assert count_steps({"total_steps": None, "epochs": 3}, rows=None, batch=10) is None
