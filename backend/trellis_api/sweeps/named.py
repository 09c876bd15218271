"""What the request of a sweep names."""

from collections.abc import Mapping
from typing import Any

from trellis_api.jobs.named import Named


def list_named(document: Mapping[str, Any]) -> Named:
    """List what the job names whose runs a sweep begins; rewards, environments and code do not vary."""
    named = Named()
    named.add_training(document["job"])
    return named
