"""The platform's settings in a worker process."""

from functools import cache

from trellis_api.core.settings import Settings


@cache
def get_settings() -> Settings:
    """Read the settings from the environment, at first use."""
    return Settings()
