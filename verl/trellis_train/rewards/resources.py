"""What the names in a mixture's options stand for, as the platform wrote it beside the job spec."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from trellis_contracts.attempt import REWARD_KEYS_FILE, REWARDS_FILE
from trellis_contracts.rewards import RewardResources

from trellis_train.hooks.event_spool import ATTEMPT_DIR_VARIABLE


@dataclass(frozen=True)
class ScoringPlace:
    """Where rewards find what they need: files, models, judges with their keys, and a folder for notes."""

    resources: RewardResources = field(default_factory=RewardResources)
    #: Keys of judges by name.
    keys: dict[str, str] = field(default_factory=dict, repr=False)
    #: Shared by all processes of an attempt; None where nothing is shared.
    folder: Path | None = None
    #: Whether models of rewards may use a GPU that this process sees.
    may_use_gpu: bool = True

    @classmethod
    def open(cls, folder: Path) -> "ScoringPlace":
        """Read the resources that the platform wrote into the folder; empty if there are none."""
        resources = RewardResources()
        if (folder / REWARDS_FILE).exists():
            resources = RewardResources.model_validate_json((folder / REWARDS_FILE).read_bytes())
        return cls(resources, read_keys(folder), folder)


def read_keys(folder: Path) -> dict[str, str]:
    """Read keys of judges by name."""
    path = folder / REWARD_KEYS_FILE
    if not path.exists():
        return {}
    keys: dict[str, str] = json.loads(path.read_bytes())
    return keys


def current_place() -> ScoringPlace:
    """Open the place of this process's attempt; an empty one outside an attempt."""
    folder = os.environ.get(ATTEMPT_DIR_VARIABLE)
    return ScoringPlace.open(Path(folder)) if folder else ScoringPlace()
