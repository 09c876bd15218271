"""What can go wrong with sweeps."""

from trellis_api.core.errors import Conflict, InvalidRequest, NotFound


class SweepNotFound(NotFound):
    """No sweep has this id."""

    code = "sweep_not_found"


class InvalidSweep(InvalidRequest):
    """The sweep cannot run as it is; details name each problem with its field."""

    code = "invalid_sweep"


class SweepRunning(Conflict):
    """The sweep is under way."""

    code = "sweep_running"


class SweepNotRunning(Conflict):
    """There is nothing to stop."""

    code = "sweep_not_running"


class SweepFinished(Conflict):
    """All runs of the sweep are over; there is nothing to go on with."""

    code = "sweep_finished"
