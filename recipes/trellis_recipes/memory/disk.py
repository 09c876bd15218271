"""How much a run writes to disk: the size of a checkpoint, and how many lie there at once."""

from dataclasses import dataclass
from typing import Any

from trellis_contracts.recipe import Engine

from trellis_recipes.memory import formulas
from trellis_recipes.memory.architecture import Architecture
from trellis_recipes.memory.plan import Training, read_plan
from trellis_recipes.memory.settings import group
from trellis_recipes.recipe_parameters import Value

#: Adapters and their optimizer are in full precision.
_ADAPTER_BYTES = 4
#: verl's settings of what a checkpoint holds.
_CONTENTS = {
    Engine.VERL_PPO: "actor_rollout_ref.actor.checkpoint",
    Engine.VERL_SFT: "checkpoint",
}


@dataclass(frozen=True)
class DiskUse:
    """What a run will write, in bytes."""

    checkpoint_bytes: int
    #: Checkpoints that lie there at the same time; None where the number of steps is not known.
    checkpoints: int | None

    @property
    def total_bytes(self) -> int | None:
        """All of them together."""
        return None if self.checkpoints is None else self.checkpoints * self.checkpoint_bytes


def estimate_disk(
    architecture: Architecture,
    *,
    engine: Engine,
    recipe: str,
    config: dict[str, Any],
    platform: str,
    gpus: int,
    env: dict[str, str],
    parameters: int,
    saves: int | None,
    keep: int | None,
) -> DiskUse:
    """Estimate size and number of a run's checkpoints; raises ``IncompleteConfiguration`` as for memory."""
    plan = read_plan(engine, config, recipe=recipe, platform=platform, gpus=gpus, env=env)
    contents = _read_contents(engine, config)
    size = _checkpoint_bytes(architecture, plan.training, parameters, contents)
    if plan.critic is not None:
        size += _checkpoint_bytes(architecture, plan.critic, parameters, contents - {"hf_model"})
    return DiskUse(size, _count_kept(saves, keep))


def count_saves(*, total_steps: int | None, save_every: int) -> int | None:
    """Count the checkpoints written: one per interval and one at the end; None if the length is unknown."""
    if not save_every:
        return 1
    return None if total_steps is None else -(-total_steps // save_every)


def count_steps(parameters: dict[str, Value], *, rows: int | None, batch: int) -> int | None:
    """Count the steps of a run; None if only the tokenizer can tell how many its rows make."""
    if isinstance(total := parameters.get("total_steps"), int):
        return total
    epochs = parameters.get("epochs")
    if rows is None or not isinstance(epochs, int):
        return None
    return max(1, rows // max(1, batch)) * epochs


def _read_contents(engine: Engine, config: dict[str, Any]) -> frozenset[str]:
    """Return what a checkpoint holds: for TRL and retrieval what is trained, and its optimizer."""
    if engine not in _CONTENTS:
        return frozenset({"trained", "optimizer"})
    found = config
    for name in _CONTENTS[engine].split("."):
        found = group(found, name)
    return frozenset(str(each) for each in found.get("save_contents") or ())


def _checkpoint_bytes(
    architecture: Architecture, training: Training, parameters: int, contents: frozenset[str]
) -> int:
    adapter = 0
    if training.lora_rank:
        adapter = architecture.count_lora(training.lora_rank, training.lora_targets) * _ADAPTER_BYTES
    base = parameters * training.weight_bytes
    trained = adapter or base
    sizes = {
        "trained": trained,
        # Base and adapter side by side.
        "model": base + adapter,
        "optimizer": trained * formulas.ADAM_BYTES // 4,
        # The weights once more, for others to load, in the precision in which they are trained.
        "hf_model": base,
    }
    return sum(size for name, size in sizes.items() if name in contents)


def _count_kept(saves: int | None, keep: int | None) -> int | None:
    """Count the checkpoints on disk: the last ``keep``, the best, and one more while it is being written."""
    if keep is None:
        return saves
    most = keep + 2
    return most if saves is None else min(saves, most)
