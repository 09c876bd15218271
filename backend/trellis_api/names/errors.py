"""Errors of looking up names."""

from trellis_api.core.errors import InvalidRequest


class AmbiguousName(InvalidRequest):
    """Several things are called so."""

    code = "ambiguous_name"
