"""Counts the scores of a step that rewards raised for, and ends a run whose rewards fail."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trellis_train.hooks.event_spool import ATTEMPT_DIR_VARIABLE
from trellis_train.rewards.error_notes import read_last_note
from trellis_train.rewards.mixture import ERROR_KEY, UNUSABLE
from trellis_train.rollout.sample_ids import real_keys

METRIC = "reward/errors"
#: Above this share of a step's scores the policy would learn from the errors.
MAX_ERROR_SHARE = 0.5


class RewardsFailing(RuntimeError):
    """Training on these scores would teach nothing that was meant."""


def check_rewards(batch: Any, *, step: int) -> dict[str, float]:
    """The number of failed scores in ``batch`` (verl's ``KVBatchMeta``); raises ``RewardsFailing``."""
    import transfer_queue as tq

    keys = real_keys(batch)
    if not keys:
        return {}
    data = tq.kv_batch_get(keys=keys, partition_id=batch.partition_id, select_fields=["extra_fields"])
    if "extra_fields" not in data:
        return {}
    column = data["extra_fields"]
    fields = column.tolist() if hasattr(column, "tolist") else list(column)
    return judge_errors([read_error(each) for each in fields], step=step)


def read_error(fields: Any) -> float:
    """What the reward adapter noted of one response: 0 is none."""
    fields = getattr(fields, "data", fields)
    info = fields.get("reward_extra_info") if isinstance(fields, dict) else None
    return float((info or {}).get(ERROR_KEY, 0.0))


def judge_errors(errors: Sequence[float], *, step: int) -> dict[str, float]:
    """The metric; raises where a reward cannot go on, or raised for too many responses."""
    count = sum(error > 0 for error in errors)
    if any(error >= UNUSABLE for error in errors):
        raise RewardsFailing(f"a reward cannot be used any more at step {step}.{find_example()}")
    if count > MAX_ERROR_SHARE * len(errors):
        raise RewardsFailing(f"{count} of the {len(errors)} scores of step {step} raised.{find_example()}")
    return {METRIC: float(count)}


def require_usable(*, step: int) -> None:
    """Raise ``RewardsFailing`` where a reward has ended its use, whatever the batch of the step shows."""
    if example := find_example(only_final=True):
        raise RewardsFailing(f"a reward cannot be used any more at step {step}.{example}")


def find_example(*, only_final: bool = False) -> str:
    """What a reward said last."""
    folder = os.environ.get(ATTEMPT_DIR_VARIABLE)
    note = read_last_note(Path(folder), only_final=only_final) if folder else None
    return f" Last: {note}" if note else ""
