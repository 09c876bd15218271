"""Select the columns of a step's samples that are sent to the training processes.

verl sends all of them, several times a step. Those of the dataset and of the rewards are
objects, whose packing takes longer than that of all tensors, and no trainer reads them.
"""

from collections.abc import Callable
from functools import wraps
from typing import Any

#: What verl's losses and engines read of a sample of text; those that it lacks are passed over.
COLUMNS = (
    "input_ids",
    "position_ids",
    "attention_mask",
    "prompts",
    "responses",
    "response_mask",
    "loss_mask",
    "rm_scores",
    "token_level_rewards",
    "rollout_log_probs",
    "old_log_probs",
    "ref_log_prob",
    "entropy",
    "values",
    "advantages",
    "returns",
    "rollout_is_weights",
    "routed_experts",
)
#: Worker groups of verl's trainer, and their methods that are given a batch.
CALLS = (
    ("actor_rollout_wg", "compute_log_prob"),
    ("actor_rollout_wg", "update_actor"),
    ("ref_policy_wg", "compute_ref_log_prob"),
    ("critic_wg", "infer_batch"),
    ("critic_wg", "train_mini_batch"),
)


def send_trained_columns(trainer: Any) -> None:
    """Let ``trainer`` send :data:`COLUMNS` only, unless samples hold media or a teacher's words."""
    distillation = trainer.config.get("distillation") or {}
    if trainer.processor is not None or distillation.get("enabled", False):
        return
    for group, method in CALLS:
        workers = getattr(trainer, group, None)
        if hasattr(workers, method):
            setattr(workers, method, with_columns(getattr(workers, method)))


def with_columns(call: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Wrap ``call`` so that its batch (verl's ``KVBatchMeta``) names the columns while it is sent."""

    @wraps(call)
    def call_with_columns(batch: Any) -> Any:
        named, batch.fields = batch.fields, list(COLUMNS)
        try:
            return call(batch)
        finally:
            batch.fields = named

    return call_with_columns
