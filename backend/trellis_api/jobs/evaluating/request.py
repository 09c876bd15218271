"""What a job asks to be measured on, checked when it is asked for: nothing of it shall fail hours later."""

from typing import Any

from sqlmodel import Session
from trellis_recipes.issues import Issue

from trellis_api.benchmarks import service as benchmarks
from trellis_api.core.settings import Settings
from trellis_api.evaluations import checking
from trellis_api.evaluations.errors import InvalidOrder
from trellis_api.evaluations.orders import EvaluateWhileTraining
from trellis_api.jobs.evaluating.keys import name_best_by
from trellis_api.jobs.models import Job

_FIELD = "evaluate.benchmarks"


def settle_order(session: Session, settings: Settings, *, job: Job, order: EvaluateWhileTraining) -> None:
    """Write into a job that is about to be queued what it is measured on, versions of datasets named.

    Raises ``InvalidOrder`` with every problem. Benchmarks whose files are not here are brought from now on.
    """
    checked = checking.check_orders(session, settings, order.benchmarks, field=_FIELD)
    for name in checking.names_to_install(checked):
        benchmarks.install_if_absent(session, name=name)
    job.evaluate = order.model_copy(update={"benchmarks": checked}).model_dump(mode="json")
    job.keep_best_by = job.keep_best_by or name_best_by(job.evaluate)


def find_errors(session: Session, settings: Settings, *, order: EvaluateWhileTraining) -> list[Issue]:
    """List the issues that ``settle_order`` would raise."""
    try:
        checking.check_orders(session, settings, order.benchmarks, field=_FIELD)
    except InvalidOrder as error:
        return [Issue(**issue) for issue in error.details]
    return []


def find_warnings(order: EvaluateWhileTraining, *, params: dict[str, Any]) -> list[Issue]:
    """Warn if no checkpoint will be saved before the end; ``params`` are all parameters with their values."""
    every = params.get("save_every")
    if every != 0 or (order.every_steps is None and order.every_minutes is None):
        return []
    message = (
        "The job only saves a checkpoint at the end (save_every is 0), so there will "
        "be no evaluation before that."
    )
    return [Issue(code="no_checkpoints_to_evaluate", field="params.save_every", message=message)]
