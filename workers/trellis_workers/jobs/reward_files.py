"""Hands over what a run's rewards need: own files copied, models by their folders, judges with their keys."""

import json
import os
from pathlib import Path
from typing import Any

from trellis_api.core.settings import Settings
from trellis_api.jobs.models import Job
from trellis_api.rewards.resources import FoundResources, as_terms, find_resources
from trellis_contracts.attempt import REWARD_FILES_FOLDER, REWARD_KEYS_FILE, REWARDS_FILE
from trellis_contracts.endpoints import JudgeEndpoint
from trellis_contracts.private_files import write_private
from trellis_contracts.rewards import RewardFileSource, RewardResources

from trellis_workers.core.transaction import read


def stage_rewards(settings: Settings, job: Job, attempt_dir: Path) -> dict[str, Any] | None:
    """Write what the job's rewards need beside its spec; what that was, for the manifest.

    None where they need nothing. Raises ``DomainError`` where something was deleted since the submission.
    """
    with read() as session:
        found = find_resources(session, settings, terms=as_terms(job.params.get("rewards")))
    if not (found.files or found.models or found.judges):
        return None
    resources = copy_resources(attempt_dir, found)
    write_private(attempt_dir / REWARDS_FILE, resources.model_dump_json(indent=2))
    return resources.model_dump(mode="json")


def copy_resources(folder: Path, found: FoundResources) -> RewardResources:
    """Copy files and write keys (mode 600); the rest is said in the returned resources."""
    files = {}
    for file_id, file in found.files.items():
        path = folder / REWARD_FILES_FOLDER / f"{file_id}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_private(path, file.code)
        files[file_id] = RewardFileSource(name=file.name, path=str(path), sha256=file.sha256)
    keys = find_keys(found.judges)
    if keys:
        write_private(folder / REWARD_KEYS_FILE, json.dumps(keys))
    return RewardResources(files=files, models=found.models, judges=found.judges)


def find_keys(judges: dict[str, JudgeEndpoint]) -> dict[str, str]:
    """Return the keys in this worker's environment, by judge name."""
    keys = {
        name: os.environ.get(judge.key_variable, "") for name, judge in judges.items() if judge.key_variable
    }
    return {name: key for name, key in keys.items() if key}
