"""The environment of processes that workers start: what they need of the worker's, and no secrets beside."""

import os

from trellis_contracts.private_settings import PRIVATE_SETTINGS, without_secrets


def data_environment() -> dict[str, str]:
    """For work on data, which reads hubs and S3 and asks judges and endpoints with keys of the worker's."""
    return {name: value for name, value in os.environ.items() if name not in PRIVATE_SETTINGS}


def plain_environment(*kept: str) -> dict[str, str]:
    """For a child that needs no secret but those that are named; the way to Ray is one, too."""
    return without_secrets(os.environ, kept)
