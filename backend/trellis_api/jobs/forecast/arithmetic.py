"""Floating-point operations of a step, for machines where no comparable run has been measured."""

from collections.abc import Mapping
from typing import Any

from trellis_contracts.recipe import DataFormat, Engine
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.compose import ComposeRequest, Composition
from trellis_recipes.trl_mapping import rows_per_step, whole
from trellis_recipes.trl_schema import TRAINERS

from trellis_api.jobs.forecast.work import LENGTHS, rows_of_a_step

#: Operations per parameter and token (arXiv:2001.08361): a forward pass, and a training pass, in which an
#: adapter's base gets no gradients of its own.
_FORWARD, _TRAINING, _ADAPTER_TRAINING = 2, 6, 4
#: A step of a smaller model takes as long as everything around its matrices.
_MIN_PARAMETERS = 50_000_000
#: Bytes of a dataset's row, as JSON, that make a token.
_BYTES_PER_TOKEN = 3


def count_step_flops(
    composition: Composition, request: ComposeRequest, *, row_bytes: float | None
) -> float | None:
    """Count the operations of a step whose prompts and responses have their full length.

    ``row_bytes`` is the mean size of a row, which bounds the tokens that supervised and preference training
    learn from. None where the model's size is unknown or too small, or the engine does something else.
    """
    parameters = request.parameters
    if parameters is None or parameters < _MIN_PARAMETERS:
        return None
    if composition.engine is Engine.VERL_PPO:
        return float(parameters * _count_rl(composition))
    if composition.engine in (Engine.VERL_SFT, Engine.TRL):
        return parameters * _count_supervised(composition, request, row_bytes)
    return None


def _train(params: Mapping[str, Any]) -> int:
    passes = _ADAPTER_TRAINING if whole(params.get("lora_rank"), 0) else _TRAINING
    return passes + (_FORWARD if params.get("gradient_checkpointing") else 0)


def _count_rl(composition: Composition) -> int:
    """Count token passes: sampling, log-probabilities before the update, and the update."""
    params = composition.params
    rows, group = rows_of_a_step(params), whole(params.get("group_size"), 1)
    prompt, response = (whole(params.get(name), 0) for name in LENGTHS)
    update = _train(params) * whole(params.get("ppo_epochs"), 1)
    before = _FORWARD * ((params.get("old_log_probs") != "sampler") + _has_reference(params))
    critic = _TRAINING + _FORWARD if composition.config["algorithm"]["adv_estimator"] == "gae" else 0
    # The responses of a group share their prompt when they are sampled.
    sampled = rows * response + rows // group * prompt
    return _FORWARD * sampled + (update + before + critic) * rows * (prompt + response)


def _has_reference(params: Mapping[str, Any]) -> bool:
    return bool(params.get("use_kl_loss") or params.get("kl_in_reward"))


def _count_supervised(composition: Composition, request: ComposeRequest, row_bytes: float | None) -> float:
    params, trainer = composition.params, TRAINERS.get(request.recipe)
    texts = trainer.texts_per_row if trainer else 1
    longest = float(texts * whole(params.get("max_length"), 0))
    is_packed = get_recipe(request.recipe).row_format is DataFormat.TEXT
    tokens = longest if is_packed or row_bytes is None else min(longest, row_bytes / _BYTES_PER_TOKEN)
    compares = trainer is not None and trainer.has_reference and not params.get("reference_free")
    rows = rows_per_step(request, params) if trainer else rows_of_a_step(params)
    return rows * tokens * (_train(params) + (_FORWARD if compares else 0))
