"""Hands over the workflow that a job trains: its code, copied beside the job's spec."""

from pathlib import Path

from trellis_api.jobs.models import Job
from trellis_api.workflows.service import require_workflow
from trellis_contracts.attempt import WORKFLOW_FILE

from trellis_workers.core.private_file import write_private
from trellis_workers.core.transaction import read


def hand_over_workflow(job: Job, attempt_dir: Path) -> str | None:
    """``file:function`` of the copy in the attempt's folder; None for a job without a workflow.

    Raises ``DomainError`` where it was deleted since the submission.
    """
    with read() as session:
        file = require_workflow(session, job.params)
    if file is None:
        return None
    path = attempt_dir / WORKFLOW_FILE
    path.parent.mkdir(parents=True, exist_ok=True)
    write_private(path, file.code)
    return f"{path}:{file.function}"
