"""Which changes of parameters are known to help against a cause, and for which causes another attempt helps.

Beside ``hints.py``, which says the same and more in words.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from trellis_contracts.recipe import Parameter, Recipe
from trellis_contracts.states import JobState
from trellis_recipes.catalogue import UnknownRecipe, get_recipe

from trellis_api.jobs.models import TRAIN, Job
from trellis_api.jobs.schemas import ParameterChange

Number = int | float
Change = Callable[[Parameter, Any], Any]


def _halve(parameter: Parameter, value: Any) -> Any:
    """Halve a value, not below its minimum; None if it is empty or can't be lowered."""
    if not isinstance(value, Number) or isinstance(value, bool):
        return None
    half = value / 2 if parameter.type == "float" else max(int(value) // 2, int(parameter.minimum or 1))
    return half if half < value else None


def _halve_or_least(parameter: Parameter, value: Any) -> Any:
    """Halve a value like ``_halve``, but return the minimum if the platform chose it."""
    return int(parameter.minimum or 1) if value is None else _halve(parameter, value)


def _double(parameter: Parameter, value: Any) -> Any:
    if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
        return None
    doubled = value * 2 if parameter.maximum is None else min(value * 2, int(parameter.maximum))
    return doubled if doubled > value else None


def _set(wanted: Any) -> Change:
    return lambda _parameter, value: None if value == wanted else wanted


@dataclass(frozen=True)
class Step:
    """One parameter and what becomes of its value."""

    parameter: str
    change: Change


#: The first group with a change that the recipe allows is suggested, whole.
Remedy = tuple[tuple[Step, ...], ...]

_LESS_MEMORY: Remedy = (
    (
        Step("gradient_checkpointing", _set(True)),
        Step("micro_batch_size", _halve_or_least),
        Step("max_tokens_per_gpu", _halve),
    ),
    (Step("max_response_length", _halve), Step("max_length", _halve)),
)
_FEWER_CHECKPOINTS: Remedy = ((Step("keep_checkpoints", _set(1)),),)

REMEDIES: dict[str, Remedy] = {
    "out_of_memory": _LESS_MEMORY,
    "cuda_out_of_memory": _LESS_MEMORY,
    "killed": _LESS_MEMORY,
    "worker_died": _LESS_MEMORY,
    "disk_full": _FEWER_CHECKPOINTS,
    "storage_full": _FEWER_CHECKPOINTS,
    "kv_cache_too_small": ((Step("max_response_length", _halve), Step("max_length", _halve)),),
    "prompt_too_long": ((Step("max_prompt_length", _double),),),
    "no_rows_left": ((Step("max_length", _double), Step("max_prompt_length", _double)),),
    "non_finite_loss": ((Step("learning_rate", _halve),),),
    "sampling_exhausted": ((Step("max_generation_batches", _double),),),
    "tools_not_shown": ((Step("tool_template", _set("hermes")),),),
}

#: What came from outside, or is put right outside the job: the same settings may succeed.
RESUME_HELPS = frozenset(
    {
        "killed", "heartbeat_lost", "frozen", "node_lost", "launch_failed", "not_placed", "disk_full",
        "storage_full", "storage_unwritable", "shared_memory_full", "hub_unreachable", "gpu_fault",
        "communication_failed", "worker_died", "cluster_unreachable", "port_in_use", "native_crash",
        "terminated", "ended", "disowned", "isolation_unavailable", "missing_package", "permission_denied",
        "other_platform",
    }
)  # fmt: skip


def helps_to_resume(job: Job) -> bool:
    """Tell whether another attempt with the same settings may get further, or would fail the same way."""
    if job.cause is None:
        return job.state != JobState.FAILED
    return job.cause in RESUME_HELPS


def suggest_changes(job: Job, *, composed: dict[str, Any] | None = None) -> list[ParameterChange]:
    """Suggest the parameter changes that are known to help against the cause of the job's failure.

    ``composed`` are the values that the job ran with; without them, they are those of its preset today.
    """
    if job.kind != TRAIN or job.cause not in REMEDIES:
        return []
    try:
        recipe = get_recipe(job.recipe)
    except UnknownRecipe:
        return []
    for group in REMEDIES[job.cause]:
        found = [change for step in group if (change := _apply(step, recipe, job, composed)) is not None]
        if found:
            return found
    return []


def _apply(step: Step, recipe: Recipe, job: Job, composed: dict[str, Any] | None) -> ParameterChange | None:
    parameter = recipe.parameter(step.parameter)
    if parameter is None:
        return None
    if composed is None:
        preset = next((one.params for one in recipe.presets if one.id == job.preset), {})
        composed = {**preset, **job.params}
    current = composed.get(parameter.name, parameter.default)
    suggested = step.change(parameter, current)
    if suggested is None or (parameter.choices and suggested not in parameter.choices):
        return None
    return ParameterChange(
        parameter=parameter.name, title=parameter.title, current=current, suggested=suggested
    )
