"""Counts the scores of a step that rewards raised for, and ends a run whose rewards fail."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from trellis_train.hooks.event_spool import ATTEMPT_DIR_VARIABLE
from trellis_train.rewards.error_notes import read_last_note
from trellis_train.rewards.mixture import ERROR_KEY, UNUSABLE

METRIC = "reward/errors"
#: Above this share of a step's scores the policy would learn from the errors.
MAX_ERROR_SHARE = 0.5


class RewardsFailing(RuntimeError):
    """Training on these scores would teach nothing that was meant."""


def check_rewards(infos: Sequence[Mapping[str, float]], *, step: int) -> dict[str, float]:
    """Count the failed scores in the rewards' reports; raises ``RewardsFailing``."""
    return judge_errors([info.get(ERROR_KEY, 0.0) for info in infos], step=step) if infos else {}


def judge_errors(errors: Sequence[float], *, step: int) -> dict[str, float]:
    """Count the errors; raises if a reward cannot continue, or if too many responses failed."""
    count = sum(error > 0 for error in errors)
    if any(error >= UNUSABLE for error in errors):
        raise RewardsFailing(f"a reward stopped working at step {step}.{find_example()}")
    if count > MAX_ERROR_SHARE * len(errors):
        raise RewardsFailing(f"{count} of {len(errors)} reward calls failed at step {step}.{find_example()}")
    return {METRIC: float(count)}


def require_usable(*, step: int) -> None:
    """Raise ``RewardsFailing`` where a reward has ended its use, whatever the batch of the step shows."""
    if example := find_example(only_final=True):
        raise RewardsFailing(f"a reward stopped working at step {step}.{example}")


def find_example(*, only_final: bool = False) -> str:
    """Return the last error message of a reward."""
    folder = os.environ.get(ATTEMPT_DIR_VARIABLE)
    note = read_last_note(Path(folder), only_final=only_final) if folder else None
    return f" Last: {note}" if note else ""
