"""The environment of processes that workers start: what they need of the worker's, and no secrets beside."""

import os

from trellis_contracts.private_settings import PRIVATE_SETTINGS, without_secrets


def data_environment() -> dict[str, str]:
    """Make an environment for data tasks: they need the worker's keys for hubs, S3, judges and endpoints."""
    return {name: value for name, value in os.environ.items() if name not in PRIVATE_SETTINGS}


def plain_environment(*kept: str) -> dict[str, str]:
    """Make an environment without secrets except the named ones; the way to Ray counts as one, too."""
    return without_secrets(os.environ, kept)
