"""How verl's FSDP engine passes rows of several lengths through a model on a CPU.

Rows that share prompts pass with each prompt once (``cpu.shared_prefix_forward``,
docs/adr/0021-prompts-once-a-pass.md). Others pass without verl's mask: it hides what fills up shorter rows on
their right, which causal attention never sees from their tokens, and without one PyTorch's attention leaves
out all that lies ahead of a token.
"""

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any

import torch
from torch import Tensor

from trellis_train.cpu.entropy import entropy
from trellis_train.cpu.prompts import SharedPrompts
from trellis_train.cpu.shared_prefix_forward import can_share_prompts, response_logits
from trellis_train.cpu.token_log_probs import token_log_probs

#: The engine of language models; that of critics inherits from it.
ENGINE = "FSDPEngineWithLMHead"
#: Sharing pays if a pass computes at most this part of the positions: it is two passes, and masked.
MOST_OF_POSITIONS = 0.9
#: Settings of a pass of which only verl's own knows: packed rows, logits that are never whole, distillation.
OTHER_PASSES = (
    "use_remove_padding",
    "use_fused_kernels",
    "calculate_sum_pi_squared",
    "distillation_use_topk",
    "distillation_only",
)


def sharing_prompts(forward_step: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``forward_step`` to pass prompts once where that is possible and saves time."""

    @wraps(forward_step)
    def share_prompts(self: Any, micro_batch: Any, loss_function: Any, forward_only: bool) -> Any:
        shared = find_shared(self, micro_batch) if type(self).__name__ == ENGINE else None
        if shared is None:
            return forward_step(self, micro_batch, loss_function, forward_only)
        return step_with_shared_prompts(self, micro_batch, shared, loss_function)

    return share_prompts


def leaving_out_masks(prepare_model_inputs: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``prepare_model_inputs`` to drop a mask that hides only the ends of rows."""

    @wraps(prepare_model_inputs)
    def prepare_without_mask(self: Any, micro_batch: Any) -> Any:
        model_inputs, output_args = prepare_model_inputs(self, micro_batch)
        return without_mask(model_inputs), output_args

    return prepare_without_mask


def find_shared(engine: Any, micro_batch: Any) -> SharedPrompts | None:
    """Return each prompt of ``micro_batch`` once, or None if the engine cannot share them or it is slower."""
    if not _is_plain(engine, micro_batch) or not _can_share(engine):
        return None
    shared = SharedPrompts.find(micro_batch["prompts"].unbind(), micro_batch["responses"].unbind())
    rows = micro_batch["input_ids"].offsets().diff()
    if not torch.equal(rows, shared.lengths) or not count_tokens(micro_batch["position_ids"]):
        return None
    is_worth_it = shared.positions <= MOST_OF_POSITIONS * len(rows) * int(rows.max())
    return shared if is_worth_it else None


def _is_plain(engine: Any, micro_batch: Any) -> bool:
    """Tell whether rows have one prompt and one response each, without images, in single precision."""
    from verl.utils import tensordict_utils as tu

    columns = [micro_batch.get(name, None) for name in ("prompts", "responses", "position_ids")]
    if not all(isinstance(column, Tensor) and column.is_nested and column.dim() == 2 for column in columns):
        return False
    if any(tu.get_non_tensor_data(micro_batch, name, False) for name in OTHER_PASSES):
        return False
    shortest = min(int(column.offsets().diff().min()) for column in columns)
    is_whole = engine._autocast_dtype == torch.float32 and "multi_modal_inputs" not in micro_batch
    return is_whole and shortest > 0


def count_tokens(positions: Tensor) -> bool:
    """Tell whether nested positions are 0, 1, ... in each row."""
    return all(torch.equal(row, torch.arange(len(row))) for row in positions.unbind())


def _can_share(engine: Any) -> bool:
    """Tell whether the model can share prompts; the model is checked once."""
    if not hasattr(engine, "trellis_shares_prompts"):
        engine.trellis_shares_prompts = can_share_prompts(engine.module, engine.model_config.hf_config)
    return bool(engine.trellis_shares_prompts)


def step_with_shared_prompts(
    engine: Any, micro_batch: Any, shared: SharedPrompts, loss_function: Any
) -> tuple[Tensor, dict[str, Any]]:
    """Return what ``forward_step`` returns: the loss, and its outputs and metrics.

    As there, log-probabilities and entropies are nested (rows, tokens); those of prompts are zero here.
    """
    from verl.utils import tensordict_utils as tu
    from verl.workers.engine.utils import detach_tree

    logits = response_logits(engine.module, engine.model_config.hf_config, shared)
    logits = _scale(logits, micro_batch["temperature"], shared)
    values = {"log_probs": token_log_probs(logits, shared.labels)}
    if tu.get_non_tensor_data(micro_batch, "calculate_entropy", False):
        values["entropy"] = entropy(logits)
    offsets = micro_batch["input_ids"].offsets()
    output = {
        name: torch.nested.nested_tensor_from_jagged(shared.place(each), offsets)
        for name, each in values.items()
    }
    loss, metrics = torch.tensor(1.0), {}
    if loss_function is not None:
        group = engine.get_data_parallel_group()
        loss, metrics = loss_function(model_output=output, data=micro_batch, dp_group=group)
    return loss, {"model_output": detach_tree(output), "loss": loss.detach().item(), "metrics": metrics}


def _scale(logits: Tensor, temperature: Any, shared: SharedPrompts) -> Tensor:
    """Divide ``logits`` (tokens, vocabulary) by the temperature of all responses or of each."""
    each = torch.as_tensor(temperature, dtype=torch.float32).expand(len(shared.owners))
    if bool((each == 1).all()):
        return logits
    return logits / each.clamp(min=1e-8).repeat_interleave(shared.response_lengths).unsqueeze(-1)


def without_mask(inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Drop a mask that only hides row ends from a pass's arguments; positions count on there."""
    mask, positions = inputs.get("attention_mask"), inputs.get("position_ids")
    if mask is None or positions is None or mask.dim() != 2 or positions.shape != mask.shape:
        return dict(inputs)
    counted = torch.arange(mask.shape[1]).expand_as(positions)
    is_token = mask.bool()
    if not torch.equal(positions[is_token], counted[is_token]):
        return dict(inputs)
    return {**inputs, "attention_mask": None, "position_ids": counted}
