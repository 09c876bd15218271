"""Finds which sweeps have something to do, with one look at the database for all of them.

An idle platform is asked once every few seconds instead of once a sweep; each sweep is also run every minute,
so that one that is missed here is late and not lost.
"""

import logging
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import timedelta

from sqlalchemy.exc import SQLAlchemyError
from sqlmodel import Session
from trellis_api.benchmarks import repository as benchmarks
from trellis_api.core.columns import utc_now
from trellis_api.data_tasks import repository as data_tasks
from trellis_api.data_tasks.service import INTERACTIVE, LENGTHY
from trellis_api.data_tasks.service import LOST_AFTER as DATA_TASK_LOST_AFTER
from trellis_api.environments import repository as environments
from trellis_api.fine_tuning import repository as fine_tuning
from trellis_api.job_pipelines import repository as job_pipelines
from trellis_api.jobs import repository as jobs
from trellis_api.jobs.evaluating import repository as evaluating
from trellis_api.jobs.models import EVALUATE, EXPORT, SERVE
from trellis_api.reports import repository as reports
from trellis_api.rewards import repository as rewards
from trellis_api.sweeps import repository as sweeps
from trellis_api.transfers import service as transfers
from trellis_api.workflows import repository as workflows
from trellis_contracts import tasks
from trellis_contracts.states import JobState

log = logging.getLogger(__name__)
#: A worker that carries something out shows a sign of life at least so often.
_LOST_AFTER = timedelta(seconds=60)


def _find_due_of_jobs(session: Session) -> dict[str, bool]:
    holding = jobs.list_holding_slots(session)
    kinds = {job.kind for job in holding}
    is_launching = any(job.state == JobState.LAUNCHING for job in holding)
    return {
        tasks.LAUNCH_QUEUED: is_launching or bool(jobs.list_queued(session, limit=1)),
        tasks.RECONCILE: bool(holding),
        tasks.FINISH_EXPORTS: EXPORT in kinds,
        tasks.FINISH_EVALUATIONS: EVALUATE in kinds,
        tasks.STOP_IDLE_ENDPOINTS: SERVE in kinds,
        tasks.QUEUE_EVALUATIONS: bool(
            evaluating.list_waiting(session, limit=1) or evaluating.list_over(session, limit=1)
        ),
        tasks.ADVANCE_JOB_PIPELINES: bool(job_pipelines.list_unsettled(session)),
        tasks.ADVANCE_SWEEPS: bool(sweeps.list_unsettled(session)),
        tasks.ADVANCE_FINE_TUNING: bool(fine_tuning.list_waiting(session, with_paused=False)),
    }


def _find_due_of_data(session: Session) -> dict[str, bool]:
    lost = data_tasks.list_lost(session, silent_since=utc_now() - DATA_TASK_LOST_AFTER)
    lost_kinds = {task.kind for task in lost}
    return {
        task: bool(
            lost_kinds & {kind.value for kind in kinds} or data_tasks.list_waiting(session, kinds=kinds)
        )
        for task, kinds in ((tasks.RUN_DATA_TASKS, LENGTHY), (tasks.RUN_PREVIEWS, INTERACTIVE))
    }


def _find_due_of_domains(session: Session) -> dict[str, bool]:
    lost_before = utc_now() - _LOST_AFTER
    return {
        tasks.INSTALL_BENCHMARKS: bool(benchmarks.list_installing(session)),
        tasks.WRITE_REPORTS: bool(reports.list_unwritten(session)),
        tasks.RUN_DRY_RUNS: bool(rewards.list_waiting_dry_runs(session, lost_before=lost_before)),
        tasks.MAKE_ENVIRONMENTS: bool(
            environments.list_waiting(session, lost_before=lost_before)
            or environments.list_awaiting_rows(session)
        ),
        tasks.CALL_TOOLS: bool(environments.list_open_calls(session)),
        tasks.RUN_TRANSFERS: bool(transfers.list_due(session)),
        tasks.INSTALL_WORKFLOWS: bool(workflows.list_waiting(session, lost_before=lost_before)),
    }


#: Each is asked in a transaction of its own, so that one that fails does not hide the work of the others.
LOOKS = (_find_due_of_jobs, _find_due_of_data, _find_due_of_domains)


def find_due(open_session: Callable[[], AbstractContextManager[Session]]) -> list[str]:
    """Return the names of the tasks that have something to do now, or something under way to look after."""
    due: list[str] = []
    for look in LOOKS:
        try:
            with open_session() as session:
                due += [task for task, is_due in look(session).items() if is_due]
        except SQLAlchemyError:
            log.exception("checking for due work failed; its sweeps run once a minute until it succeeds")
    return due
