"""What the processes of an attempt may see: written beside its spec, before it is submitted."""

import json
from pathlib import Path
from typing import Any

from trellis_api.core.settings import Settings
from trellis_contracts.attempt import (
    ISOLATION_FILE,
    REWARDS_FILE,
    TEMPORARY_FOLDER,
    locate_job,
)
from trellis_contracts.evaluation import HarnessOrder
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import JobSpec

from trellis_workers.core.isolation import make_rules

#: Of what the cluster's processes share: sockets, logs and the token that opens it.
_RAY_VARIABLES = ("RAY_AUTH_MODE", "RAY_AUTH_TOKEN", "RAY_AUTH_TOKEN_PATH")
_HUB_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN")


def write_rules(settings: Settings, spec: JobSpec) -> Path:
    """Write the rules of an attempt; the file."""
    attempt_dir = Path(spec.attempt_dir)
    documents: list[Any] = [spec.model_dump(mode="json")]
    if (attempt_dir / REWARDS_FILE).exists():
        documents.append(json.loads((attempt_dir / REWARDS_FILE).read_bytes()))
    uses_ray = spec.engine == Engine.VERL_PPO
    if uses_ray:
        documents.append([str(settings.data_root / "ray" / "token")])
    rules = make_rules(
        settings,
        documents,
        writable=_list_writable(settings, spec),
        temporary=attempt_dir / TEMPORARY_FOLDER,
        kept_variables=[*(_RAY_VARIABLES if uses_ray else ()), *(_HUB_VARIABLES if _uses_hub(spec) else ())],
    )
    path = attempt_dir / ISOLATION_FILE
    rules.write(path)
    return path


def _list_writable(settings: Settings, spec: JobSpec) -> list[str]:
    # Earlier attempts and checkpoints lie there as well: a job is resumed from them.
    folders = [str(locate_job(settings.data_root, spec.job_id)), spec.checkpoint_dir]
    if spec.engine == Engine.VERL_PPO:
        folders.append(str(settings.data_root / "ray" / "head"))
    if spec.export is not None:
        # It is made beside and renamed, which cannot be done across two mounts.
        folders.append(str(Path(spec.export.output_path).parent))
    if spec.evaluation is not None:
        folders += [path for path in (spec.evaluation.output_dir, spec.evaluation.hub_cache) if path]
    return folders


def _uses_hub(spec: JobSpec) -> bool:
    """Whether it fetches files itself: tasks of lm-evaluation-harness do."""
    tasks = spec.evaluation.benchmarks if spec.evaluation is not None else []
    return any(isinstance(task.order, HarnessOrder) for task in tasks)
