"""Whether the disk takes what a job will write; the preview and the submission ask."""

import shutil

from trellis_contracts.recipe import DataFormat, Engine
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.compose import ComposeRequest, Composition
from trellis_recipes.issues import Issue
from trellis_recipes.memory.architecture import Architecture
from trellis_recipes.memory.disk import DiskUse, count_saves, count_steps, estimate_disk
from trellis_recipes.memory.settings import IncompleteConfiguration
from trellis_recipes.trl_mapping import rows_per_step, whole

from trellis_api.core.settings import Settings

_GIB = 1024**3
_KEEP = "keep_checkpoints"
#: Taken for a run that keeps all and whose length is not known.
_AT_LEAST = 2


def check_disk(composition: Composition, request: ComposeRequest, settings: Settings) -> None:
    """Add to the composition what is wrong with the room for its checkpoints.

    Other errors do not keep it from being said, as long as there is a configuration to
    reckon with. What stands in the way of an estimate is said with the memory's.
    """
    if not composition.config or request.architecture is None:
        return
    try:
        use = estimate_use(composition, request, request.architecture)
    except IncompleteConfiguration:
        return
    room = max(0, shutil.disk_usage(settings.data_root).free - settings.min_free_disk_bytes)
    count = _AT_LEAST if use.checkpoints is None else use.checkpoints
    size, there = f"{use.checkpoint_bytes / _GIB:.1f} GiB", f"{room / _GIB:.1f} GiB are free for it"
    if use.checkpoint_bytes > room:
        message = (
            f"A checkpoint takes {size}, but {there}. Free up disk space, or train an adapter (lora_rank)."
        )
        composition.errors.append(Issue(code="disk_too_small", field="params.save_every", message=message))
    elif count * use.checkpoint_bytes > room:
        message = (
            f"The run will keep {count} checkpoints of {size}, but {there}: it will fail "
            "when the disk is full. Keep fewer (keep_checkpoints), save less often, or "
            "free up disk space."
        )
        issue = Issue(code="disk_fills_up", field=f"params.{_KEEP}", message=message, suggestion="1")
        composition.warnings.append(issue)


def estimate_use(composition: Composition, request: ComposeRequest, architecture: Architecture) -> DiskUse:
    """Estimate the size of the checkpoints; ``IncompleteConfiguration`` if the settings are insufficient."""
    params = composition.params
    return estimate_disk(
        architecture,
        engine=composition.engine,
        recipe=request.recipe,
        config=composition.config,
        platform=request.platform,
        gpus=request.gpus,
        env=composition.env,
        parameters=request.parameter_count or architecture.parameters,
        saves=count_saves(
            total_steps=count_run_steps(composition, request), save_every=whole(params.get("save_every"), 0)
        ),
        keep=whole(params.get(_KEEP), 0) or None,
    )


def count_run_steps(composition: Composition, request: ComposeRequest) -> int | None:
    """Count the steps that a run will make; None if only the tokenizer can tell."""
    params = composition.params
    if composition.engine is Engine.TRL:
        batch = rows_per_step(request, params)
    else:
        batch = whole(params.get("batch_size"), 0)
    # One document may fill many blocks: only the tokenizer can tell.
    is_text = get_recipe(request.recipe).row_format is DataFormat.TEXT
    return count_steps(params, rows=None if is_text else request.row_count, batch=batch)
