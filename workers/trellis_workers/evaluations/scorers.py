"""Hands over what benchmarks of a person's own are scored with: Python files, and the keys of judges."""

import json
from pathlib import Path

from trellis_api.rewards.errors import UnknownRewardFile
from trellis_api.rewards.files import FILES
from trellis_contracts.attempt import REWARD_FILES_FOLDER, REWARD_KEYS_FILE
from trellis_contracts.evaluation import CodeScorer, CustomOrder, EvaluationTask, JudgeScorer
from trellis_contracts.private_files import write_private

from trellis_workers.core.transaction import read
from trellis_workers.jobs.reward_files import find_keys


def locate_scorer(attempt_dir: Path, file_id: str) -> Path:
    """Return the path of the copy of a reward file that an attempt scores with."""
    return attempt_dir / REWARD_FILES_FOLDER / f"{file_id}.py"


def stage_scorers(task: EvaluationTask, attempt_dir: Path) -> None:
    """Copy the files and write the keys beside the spec, for its owner alone to read.

    Raises ``UnknownRewardFile`` where a file was deleted since the evaluation was asked for.
    """
    judges = {}
    for each in task.benchmarks:
        scorer = each.order.scorer if isinstance(each.order, CustomOrder) else None
        if isinstance(scorer, CodeScorer):
            _copy(scorer.file, locate_scorer(attempt_dir, scorer.file))
        if isinstance(scorer, JudgeScorer) and each.judge is not None:
            judges[scorer.judge] = each.judge
    if keys := find_keys(judges):
        write_private(attempt_dir / REWARD_KEYS_FILE, json.dumps(keys))


def _copy(file_id: str, path: Path) -> None:
    with read() as session:
        file = FILES.find(session, file_id)
    if file is None:
        raise UnknownRewardFile(f"The reward file '{file_id}' no longer exists.")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, file.code)
