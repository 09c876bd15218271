"""How much memory a job will need, for the preview: from the model's configuration and the composed one."""

import json
import logging
import os
from functools import lru_cache
from pathlib import Path

from trellis_recipes.compose import Composition
from trellis_recipes.memory.architecture import Architecture, UnknownArchitecture, read_architecture
from trellis_recipes.memory.estimate import Machine, estimate_memory
from trellis_recipes.memory.schemas import MemoryEstimate

from trellis_api.models.models import Model
from trellis_api.monitoring.machine import Machine as MeasuredMachine

log = logging.getLogger(__name__)
_MAX_CONFIG_BYTES = 4 * 1024**2
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - its size is asked for, nothing is written


def estimate(
    composition: Composition,
    *,
    model: Model,
    data_root: Path,
    platform: str,
    gpus: int,
    measured: MeasuredMachine | None,
) -> MemoryEstimate | None:
    """The estimate; None without a configuration to estimate from, or for a model of unknown shape."""
    if not composition.config or not model.path:
        return None
    try:
        architecture = _read_architecture(data_root / model.path / "config.json", model.sha256)
    except (OSError, ValueError, RecursionError) as error:
        log.info("no memory estimate for %s: %s", model.id, error)
        return None
    try:
        return estimate_memory(
            architecture,
            engine=composition.engine,
            config=composition.config,
            platform=platform,
            gpus=gpus,
            env=composition.env,
            parameter_count=model.parameter_count,
            machine=_look(measured, platform),
        )
    except (AttributeError, KeyError, TypeError, ValueError, ZeroDivisionError):
        # A person's own engine settings may be of any kind; ``errors`` says what is wrong with them.
        log.info("no memory estimate: the composed configuration is incomplete", exc_info=True)
        return None


@lru_cache(maxsize=256)
def _read_architecture(path: Path, _sha256: str | None) -> Architecture:
    """Read once for each set of weights: with other files, the hash is another."""
    if path.stat().st_size > _MAX_CONFIG_BYTES:
        raise UnknownArchitecture("config.json is too large")
    config = json.loads(path.read_bytes())
    if not isinstance(config, dict):
        raise UnknownArchitecture("config.json is not an object")
    return read_architecture(config)


def _look(measured: MeasuredMachine | None, platform: str) -> Machine:
    """What this machine is known to have. Its GPUs stand for those of the cluster."""
    if platform == "cpu":
        try:
            shared = os.statvfs(_SHARED_MEMORY)
            shared_bytes = shared.f_frsize * shared.f_blocks
        except OSError:
            shared_bytes = None
        return Machine(measured.memory_total_bytes if measured else None, shared_bytes)
    sizes = [gpu.memory_total_bytes for gpu in (measured.gpus if measured else []) if gpu.memory_total_bytes]
    return Machine(min(sizes, default=None))
