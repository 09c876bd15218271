"""Settles evaluations that are over on Ray, with the scores they left.

Not a part of the reconciler's sweep, so that no result, however large, holds up the settling of trainings.
"""

from trellis_api.jobs.models import EVALUATE

from trellis_workers.jobs.finish import finish_over


def finish_evaluations() -> bool:
    """Settle every evaluation whose run is over, one worker at a time; whether any was."""
    return finish_over(EVALUATE, lock_file="run/finish-evaluations.lock")
