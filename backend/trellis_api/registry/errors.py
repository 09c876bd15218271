"""What can go wrong with named models."""

from trellis_api.core.errors import Conflict, NotFound


class NamedModelNotFound(NotFound):
    """Nothing is registered under this name, or not this version or alias of it."""

    code = "named_model_not_found"


class AliasMoved(Conflict):
    """Somebody has promoted another version meanwhile."""

    code = "alias_moved"


class NothingToRollBack(Conflict):
    """The alias has not stood on another version before that is still there."""

    code = "nothing_to_roll_back"


class GateClosed(Conflict):
    """The evaluation that was made the condition says no, or cannot say anything."""

    code = "gate_closed"
