"""How much memory a job will need, for the preview: from the model's configuration and the composed one."""

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from trellis_recipes.compose import Composition
from trellis_recipes.issues import Issue
from trellis_recipes.memory.architecture import Architecture, read_model_folder
from trellis_recipes.memory.estimate import Machine, estimate_memory
from trellis_recipes.memory.schemas import MemoryEstimate
from trellis_recipes.memory.settings import IncompleteConfiguration

from trellis_api.models.models import Model
from trellis_api.monitoring.machine import Machine as MeasuredMachine
from trellis_api.monitoring.machine import smallest_memory

_MAX_REASON = 200
_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - its size is asked for, nothing is written


@dataclass(frozen=True)
class Estimated:
    """The estimate, or the warning that says why there is none; neither where nothing was composed."""

    memory: MemoryEstimate | None = None
    problem: Issue | None = None


def estimate(
    composition: Composition,
    *,
    recipe: str,
    model: Model,
    data_root: Path,
    platform: str,
    gpus: int,
    measured: MeasuredMachine | None,
) -> Estimated:
    """Compute what a run will need. What stands in the way refuses no job, and is said."""
    if not composition.config or not model.path:
        return Estimated()
    try:
        architecture = find_architecture(model, data_root)
    except (OSError, ValueError, RecursionError) as error:
        reason = error.strerror if isinstance(error, OSError) else str(error)
        return _give_up("memory_model_unknown", "model", f"the model's config.json can't be used: {reason}")
    try:
        memory = estimate_memory(
            architecture,
            engine=composition.engine,
            recipe=recipe,
            config=composition.config,
            platform=platform,
            gpus=gpus,
            env=composition.env,
            parameter_count=model.parameter_count,
            machine=_look(measured, platform),
        )
    except IncompleteConfiguration as error:
        return _give_up("memory_settings_unusable", "overrides", str(error))
    return Estimated(memory)


def _give_up(code: str, field: str, reason: str) -> Estimated:
    message = f"Memory can't be estimated: {reason[:_MAX_REASON].rstrip('.')}."
    return Estimated(problem=Issue(code=code, field=field, message=message))


def find_architecture(model: Model, data_root: Path) -> Architecture:
    """Return the architecture of a model whose weights are here; raises as ``read_model_folder`` does."""
    return _read_architecture(data_root / str(model.path), model.sha256)


@lru_cache(maxsize=256)
def _read_architecture(folder: Path, _sha256: str | None) -> Architecture:
    """Read once for each set of weights: with other files, the hash is another."""
    return read_model_folder(folder)


def _look(measured: MeasuredMachine | None, platform: str) -> Machine:
    """Return the known memory of this machine. Its GPUs stand for those of the cluster."""
    if platform == "cpu":
        try:
            shared = os.statvfs(_SHARED_MEMORY)
            shared_bytes = shared.f_frsize * shared.f_blocks
        except OSError:
            shared_bytes = None
        return Machine(measured.memory_total_bytes if measured else None, shared_bytes)
    return Machine(smallest_memory(measured.gpus if measured else ()))
