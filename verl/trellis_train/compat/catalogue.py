"""All entries: the modules that register them. They load without torch and without any engine."""

from functools import cache
from importlib import import_module

from trellis_train.compat.change import Change, list_registered

#: In the order in which changes of one symbol are made.
MODULES = (
    "trellis_train.compat.vllm_name",
    "trellis_train.compat.verl_cpu",
    "trellis_train.compat.vllm_cpu",
    "trellis_train.compat.isolation",
    "trellis_train.compat.initial_weights",
    "trellis_train.compat.jagged_rows",
    "trellis_train.compat.ratios",
    "trellis_train.compat.queue_schema",
    "trellis_train.compat.frames",
    "trellis_train.compat.balance",
    "trellis_train.compat.trainer",
    "trellis_train.compat.trainer_methods",
    "trellis_train.compat.rollout_methods",
    "trellis_train.compat.other_methods",
    # A layer that nothing imports: by name.
    "trellis_train.cpu.changes",
)


@cache
def _load() -> None:
    for name in MODULES:
        import_module(name)


def list_changes(*groups: str) -> list[Change]:
    """The entries of these groups; all for none."""
    _load()
    return [entry for entry in list_registered() if not groups or entry.group in groups]
