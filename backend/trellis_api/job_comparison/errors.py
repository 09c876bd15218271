"""What can be wrong with a comparison of jobs."""

from trellis_api.core.errors import InvalidRequest


class InvalidComparison(InvalidRequest):
    """Too few or too many jobs, an id that is none, or a baseline that is not among them."""

    code = "invalid_comparison"
