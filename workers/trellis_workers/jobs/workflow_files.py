"""Hands over the workflow that a job trains: its code beside the job's spec, or the folder of its package."""

import json
import os
from dataclasses import dataclass, field
from pathlib import Path

from trellis_api.core.settings import Settings
from trellis_api.endpoints.auxiliary import find_auxiliary_models
from trellis_api.environments.resources import require_environment
from trellis_api.jobs.models import Job
from trellis_api.workflows.folders import package_folder, packages_cache
from trellis_api.workflows.service import require_workflow
from trellis_contracts.attempt import AUXILIARY_KEYS_FILE, WORKFLOW_FILE
from trellis_contracts.endpoints import ChatEndpoint
from trellis_contracts.private_files import write_private

from trellis_workers.core.transaction import read


@dataclass(frozen=True)
class StagedWorkflow:
    """What a job's agent is told of its workflow."""

    #: ``file:function`` or ``folder:function``; None for a job without a workflow.
    path: str | None = None
    #: Folder of what its package requires, by the hash of its requirements.
    packages: str | None = None
    environment_name: str | None = None
    auxiliary_models: dict[str, ChatEndpoint] = field(default_factory=dict)
    #: Those of them that the platform serves itself.
    platform_models: list[str] = field(default_factory=list)


def stage_workflow(settings: Settings, job: Job, attempt_dir: Path, *, token: str) -> StagedWorkflow:
    """Stage what the attempt needs of its workflow.

    Keys of other models are written beside the spec (mode 600).

    Raises ``DomainError`` where something was deleted since the submission.
    """
    with read() as session:
        file = require_workflow(session, job.params)
        environment = require_environment(session, recipe=job.recipe, params=job.params)
        auxiliary = find_auxiliary_models(session, settings, params=job.params)
    if file is None:
        return StagedWorkflow()
    attempt_dir.mkdir(parents=True, exist_ok=True)
    keys = {name: token if each.is_ours else _find_key(each.endpoint) for name, each in auxiliary.items()}
    if keys:
        write_private(attempt_dir / AUXILIARY_KEYS_FILE, json.dumps({k: v for k, v in keys.items() if v}))
    if file.files is not None:
        path, packages = package_folder(settings, file.id), packages_cache(settings)
    else:
        path, packages = attempt_dir / WORKFLOW_FILE, None
        write_private(path, file.code)
    return StagedWorkflow(
        path=f"{path}:{file.function}",
        packages=str(packages) if packages is not None and file.requirements else None,
        environment_name=environment.name if environment else None,
        auxiliary_models={name: each.endpoint for name, each in auxiliary.items()},
        platform_models=[name for name, each in auxiliary.items() if each.is_ours],
    )


def _find_key(endpoint: ChatEndpoint) -> str:
    return os.environ.get(endpoint.key_variable, "") if endpoint.key_variable else ""
