"""Loads in advance what the first preview or launch needs: most of a second that no request waits for."""

import logging

from trellis_recipes.schema import EngineNotInstalled
from trellis_recipes.schemas import load_schemas

log = logging.getLogger(__name__)


def load_engines() -> None:
    """Load every engine's configuration schema; without an engine no job can be composed, which is logged."""
    try:
        load_schemas()
    except EngineNotInstalled as error:
        log.warning("no job can be composed: %s", error)
