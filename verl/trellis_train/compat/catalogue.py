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
    "trellis_train.compat.ratios",
    "trellis_train.compat.trainer",
    "trellis_train.compat.trainer_methods",
    "trellis_train.compat.rollout_methods",
    "trellis_train.compat.other_methods",
)
#: Those of optional layers, which nothing imports, by how the names of their groups begin.
LAYERS = {"cpu-": "trellis_train.cpu.changes"}


@cache
def _load(name: str) -> None:
    import_module(name)


def list_changes(*groups: str) -> list[Change]:
    """List the changes of these groups, including those of layers; all changes if none are given."""
    layers = [
        name for begin, name in LAYERS.items() if not groups or any(each.startswith(begin) for each in groups)
    ]
    for name in (*MODULES, *layers):
        _load(name)
    return [entry for entry in list_registered() if not groups or entry.group in groups]
