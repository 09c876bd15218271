"""What the supervisor of a machine's services tells of them: a file of the data root that the API reads."""

from typing import Literal

from trellis_contracts.recipe import Strict

#: Below the data root.
SUPERVISION_FILE = "run/supervision.json"
#: The file is written anew at least so often; without that for ``LIFETIME_S``, nobody supervises.
RENEW_INTERVAL_S = 5.0
LIFETIME_S = 30.0

#: ``waiting``: it has died and is started again after a pause. ``given_up``: it died too often.
SupervisedState = Literal["running", "starting", "waiting", "given_up"]


class SupervisedService(Strict):
    """One service, as the supervisor sees it."""

    name: str
    state: SupervisedState = "running"
    #: How often it was started again since the supervisor began.
    restarts: int = 0
    #: Unix time of its last death, or of the moment when it was given up as hung.
    died_at: float | None = None
    #: Why it was started again last, in a sentence.
    reason: str | None = None


class Supervision(Strict):
    """The file."""

    pid: int
    #: Unix times.
    started_at: float
    renewed_at: float
    services: list[SupervisedService]
