"""Sends new metrics of jobs to Weights & Biases: beat calls it every few seconds.

The package runs in a process of its own (``wandb_run.py``), which alone gets the key. What was sent is noted
behind it, so a worker that dies in between sends a step twice: W&B ignores steps that it has.
"""

import json
import logging
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from trellis_api.core.columns import utc_now
from trellis_api.jobs.reporting import service as reporting
from trellis_api.jobs.reporting.service import Report

from trellis_workers.core.child_environment import plain_environment
from trellis_workers.core.last_lines import last_lines
from trellis_workers.core.processes import end_group
from trellis_workers.core.settings import get_settings
from trellis_workers.core.transaction import read, write

logger = logging.getLogger(__name__)

#: For all jobs of a sweep, and what has to be left of it to begin with another one.
_BUDGET_S, _LEAST_S = 60.0, 30.0
_MODULE = "trellis_workers.jobs.wandb_run"
_KEY_VARIABLE = "WANDB_API_KEY"
#: The API has a key, else the job would have been refused; a clone keeps where its original reported.
_NO_KEY = "the workers have no key; set TRELLIS_WANDB_API_KEY for them too"
_FOLDER, _LOG_FILE = "run/wandb", "log"
#: In the data root, where runs are kept that are not sent: a folder for each job.
KEPT_FOLDER = "wandb"
#: The page of the run, which the process notes for us.
_URL_FILE, _MAX_URL = "url", 2000


@dataclass(frozen=True)
class Sent:
    """What became of one report."""

    #: Why it could not be sent; None where it was.
    problem: str | None = None
    url: str | None = None


def send_reports() -> None:
    """Send what is new of each job; a failure is noted at it and tried again. The caller holds the lock."""
    settings = get_settings()
    secret = settings.wandb_api_key
    key = secret.get_secret_value() if secret is not None else None
    deadline = time.monotonic() + _BUDGET_S
    # What a worker that was killed has left.
    shutil.rmtree(settings.data_root / _FOLDER, ignore_errors=True)
    with read() as session:
        waiting = reporting.list_unreported(session, now=utc_now())
    for job_id in waiting:
        timeout_s = deadline - time.monotonic()
        if timeout_s < _LEAST_S:
            return  # the others come first in the next sweep
        try:
            _send(job_id, key, timeout_s, is_offline=settings.wandb_offline)
        except Exception:  # the edge of the process: one job must not hold up the others
            logger.exception("the metrics of job %s could not be sent", job_id)


def _send(job_id: str, key: str | None, timeout_s: float, *, is_offline: bool) -> None:
    with read() as session:
        report = reporting.read_report(session, job_id=job_id, is_whole=is_offline)
    if report is None:
        return
    if is_offline:
        sent = keep_run(report, timeout_s)
    else:
        sent = Sent(_NO_KEY) if key is None else run_wandb(report, key, timeout_s)
    with write() as session:
        if sent.problem is None:
            reporting.note_sent(session, job_id=job_id, report=report, url=sent.url)
        else:
            reason = sent.problem.replace(key, "***") if key else sent.problem
            reporting.note_failure(session, job_id=job_id, reason=reason)
    if sent.problem is not None:
        logger.warning("the metrics of job %s could not be sent", job_id)


def run_wandb(report: Report, key: str, timeout_s: float) -> Sent:
    """Send one report."""
    parent = get_settings().data_root / _FOLDER
    parent.mkdir(parents=True, exist_ok=True)
    # What the package started may still write there.
    with tempfile.TemporaryDirectory(dir=parent, ignore_cleanup_errors=True) as folder:
        problem = _run(report, Path(folder), {_KEY_VARIABLE: key}, timeout_s)
        return Sent(problem, None if problem else _read_url(Path(folder) / _URL_FILE))


def keep_run(report: Report, timeout_s: float) -> Sent:
    """Write one report as an offline run, which ``wandb sync`` sends from a machine with a network."""
    folder = get_settings().data_root / KEPT_FOLDER / report.run_id
    folder.mkdir(parents=True, exist_ok=True)
    return Sent(_run(report, folder, {"WANDB_MODE": "offline"}, timeout_s))


def _read_url(path: Path) -> str | None:
    """Read the run's URL; None if the package gave none, as offline."""
    url = path.read_text(encoding="utf-8") if path.exists() else ""
    return url if url.startswith(("https://", "http://")) and len(url) <= _MAX_URL else None


def _run(report: Report, folder: Path, variables: dict[str, str], timeout_s: float) -> str | None:
    """Run the package on a report with these variables, and return what went wrong."""
    asked = report.settings.model_dump(include={"project", "entity", "tags"}, exclude_none=True)
    group = {"group": report.group} if report.group else {}
    order = {
        "run": {**asked, "id": report.run_id, "name": report.name, **group},
        "config": report.config,
        "steps": report.steps,
        "folder": str(folder),
    }
    log = folder / _LOG_FILE
    # The errors go to a file: a pipe stays open for as long as anything that the package started lives.
    with log.open("wb") as errors:
        child = subprocess.Popen(  # noqa: S603 - our own module
            [sys.executable, "-m", _MODULE],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env={**plain_environment(), **variables},
            start_new_session=True,
        )
        try:
            child.communicate(json.dumps(order).encode(), timeout_s)
        except subprocess.TimeoutExpired:
            return f"no answer within {timeout_s:.0f} s"
        finally:
            end_group(child)  # the package's own service leaves when its parent is gone
    if child.returncode == 0:
        return None
    lines = last_lines(log, 1)
    return lines[0] if lines else f"exit code {child.returncode}"
