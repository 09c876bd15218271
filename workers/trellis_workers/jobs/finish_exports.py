"""Settles exports that are over on Ray: what they wrote is hashed, and the model registered.

Not a part of the reconciler's sweep, which has a time limit: tens of gigabytes take minutes.
"""

from trellis_api.jobs.models import EXPORT

from trellis_workers.jobs.finish import finish_over


def finish_exports() -> None:
    """Settle every export whose run is over, one after the other; one worker at a time does."""
    finish_over(EXPORT, lock_file="run/finish-exports.lock")
