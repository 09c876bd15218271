"""Sends new metrics of fine-tuning jobs to Weights & Biases: beat calls it every few seconds.

The package runs in a process of its own (``wandb_run.py``), which alone gets the key. What was sent is noted
behind it, so a worker that dies in between sends a step twice: W&B ignores steps that it has.
"""

import json
import logging
import os
import subprocess
import sys

from trellis_api.fine_tuning import reporting
from trellis_api.fine_tuning.reporting import Report

from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write

logger = logging.getLogger(__name__)

_TIMEOUT_S = 120.0
_MODULE = "trellis_workers.fine_tuning.wandb_run"
_KEY_VARIABLE = "WANDB_API_KEY"


def send_reports() -> None:
    """Send what is new of each job; a failure is noted at the job and tried again."""
    key = get_settings().wandb_api_key
    if key is None:
        return
    with read() as session:
        waiting = reporting.list_unreported(session)
    for job_id in waiting:
        try:
            _send(job_id, key.get_secret_value())
        except Exception:  # the edge of the process: one job must not hold up the others
            logger.exception("the metrics of fine-tuning job %s could not be sent", job_id)


def _send(job_id: str, key: str) -> None:
    with read() as session:
        report = reporting.read_report(session, job_id=job_id)
    if report is None:
        return
    problem = run_wandb(job_id, report, key)
    with write() as session:
        if problem is None:
            reporting.note_sent(session, job_id=job_id, report=report)
        else:
            reporting.note_failure(session, job_id=job_id, reason=problem.replace(key, "***"))
    if problem is not None:
        logger.warning("the metrics of fine-tuning job %s could not be sent", job_id)


def run_wandb(job_id: str, report: Report, key: str) -> str | None:
    """Send one report; the reason where that failed."""
    folder = get_settings().data_root / "run" / "wandb"
    folder.mkdir(parents=True, exist_ok=True)
    order = {
        "run": {**report.settings.model_dump(exclude_none=True), "id": job_id},
        "config": report.config,
        "steps": report.steps,
        "folder": str(folder),
    }
    try:
        done = subprocess.run(  # noqa: S603 - our own module
            [sys.executable, "-m", _MODULE],
            input=json.dumps(order),
            env={**os.environ, _KEY_VARIABLE: key},
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {_TIMEOUT_S:g} s"
    if done.returncode == 0:
        return None
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    return lines[-1] if lines else f"exit code {done.returncode}"
