"""Why a run can't be repeated."""

from trellis_api.core.errors import InvalidRequest


class CannotReplay(InvalidRequest):
    """Something that the run was made from isn't here any more; the details name each."""

    code = "cannot_replay"
