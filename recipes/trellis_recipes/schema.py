"""The config schema of the installed verl: its Hydra files, composed once a process.

Neither verl nor torch is imported: the wheel's files are found through its import
spec, so that the API can check a configuration in milliseconds.
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from threading import Lock
from typing import Any, Protocol

from trellis_contracts.recipe import Engine

from trellis_recipes.dataclass_fields import ANY, ConfigClasses, FieldType

#: Root config of each engine inside verl's ``trainer/config``.
ROOT_CONFIGS = {Engine.VERL_PPO: "ppo_trainer", Engine.VERL_SFT: "sft_trainer_engine"}
#: Keys that verl reads with ``.get`` though neither its YAML nor a dataclass names them.
UNLISTED: dict[Engine, dict[str, FieldType]] = {
    Engine.VERL_PPO: {
        "reward.custom_reward_function.reward_kwargs": FieldType(frozenset({"dict"})),
        "reward.reward_kwargs": FieldType(frozenset({"dict"})),
        "data.cache_dir": FieldType(frozenset({"str"})),
        "data.chat_template_func": FieldType(frozenset({"str", "none"})),
        "data.need_tools_kwargs": FieldType(frozenset({"bool"})),
        "data.filter_prompts": FieldType(frozenset({"bool"})),
        # One limit or two, "0.5_4.0"; verl's file has a number there.
        "algorithm.rollout_correction.rollout_is_threshold": FieldType(frozenset({"float", "str"})),
        "ray_kwargs.ray_init.num_gpus": FieldType(frozenset({"int", "none"})),
    },
    Engine.VERL_SFT: {
        "trainer.save_freq": FieldType(frozenset({"int", "str"})),
        "trainer.test_freq": FieldType(frozenset({"int", "str"})),
    },
}
#: Where verl keeps its config dataclasses.
CLASS_SOURCES = ("workers/config", "trainer/config", "utils/profiler", "utils/skip")
_lock = Lock()


class EngineNotInstalled(RuntimeError):
    """The engine's package is missing, so nothing can be checked against it."""


@dataclass(frozen=True)
class Key:
    """One key that may be set: what it accepts, and whether Hydra must be told to add it."""

    type: FieldType
    is_new: bool = False


class FieldSource(Protocol):
    """Where the fields of a config class are read from."""

    def fields(self, class_name: str) -> dict[str, FieldType]:
        """Return fields by name; empty for a class that is not known."""
        ...


class EngineSchema:
    """Keys, types and defaults of one engine's configuration."""

    def __init__(self, engine: Engine, tree: dict[str, Any], classes: FieldSource) -> None:
        self.engine = engine
        #: Defaults, interpolations left as they are. Not to be changed: copy it first.
        self.tree = tree
        self._unlisted = UNLISTED.get(engine, {})
        self._leaves: dict[str, FieldType] = {}
        #: Fields of the dataclasses that the YAML files leave out.
        self._added: dict[str, FieldType] = {}
        #: Plain dicts, below which any key may stand.
        self._open: set[str] = set()
        self._classes = classes
        self._collect("", tree)

    def find(self, dotted: str) -> Key | None:
        """Return the key, or None if the engine has no such key. Groups are not keys."""
        listed = self._unlisted.get(dotted)
        if dotted in self._leaves:
            return Key(listed or self._leaves[dotted])
        if listed is not None:
            return Key(listed, is_new=True)
        if dotted in self._added:
            return Key(self._added[dotted], is_new=True)
        parent = dotted.rpartition(".")[0]
        while parent:
            field = self._added.get(parent) or self._unlisted.get(parent)
            if parent in self._open or (field is not None and field.is_open):
                return Key(ANY, is_new=True)
            parent = parent.rpartition(".")[0]
        return None

    def has_type(self, dotted: str) -> bool:
        """Tell whether the engine names the key itself; below a plain dict any key of any type is allowed."""
        return dotted in self._leaves or dotted in self._added or dotted in self._unlisted

    def typed_keys(self) -> dict[str, FieldType]:
        """Return every key that the engine names, and what it accepts."""
        return {**self._leaves, **self._added, **self._unlisted}

    def is_group(self, dotted: str) -> bool:
        """Tell whether the key holds further keys."""
        return isinstance(_select(self.tree, dotted), dict) and dotted not in self._leaves

    def is_empty_mapping(self, dotted: str) -> bool:
        """Tell whether the engine's files hold an empty mapping there, to which keys are added one by one."""
        return bool(_select(self.tree, dotted) == {})

    def defaults_to_none(self, dotted: str) -> bool:
        """Tell whether the engine's files leave the key empty."""
        return dotted in self._leaves and _select(self.tree, dotted) is None

    def _collect(self, prefix: str, tree: Mapping[str, Any]) -> None:
        fields = self._classes.fields(_class_name(tree))
        for name, default in tree.items():
            dotted = f"{prefix}{name}"
            if name == "_target_":
                continue
            field = fields.get(name)
            if isinstance(default, dict) and default:
                if field is not None and field.is_open:
                    self._open.add(dotted)
                self._collect(f"{dotted}.", default)
            else:
                if default == {} or (field is not None and "dict" in field.scalars):
                    self._open.add(dotted)
                self._leaves[dotted] = field if field and not field.nested else _type_of(default)
        for name, field in fields.items():
            if name not in tree:
                self._add(f"{prefix}{name}", field)

    def _add(self, dotted: str, field: FieldType) -> None:
        """Add a dataclass field that the YAML omits, and the fields of the nested dataclass."""
        self._added[dotted] = field
        if field.nested is not None and dotted.count(".") < 6:
            for name, below in self._classes.fields(field.nested).items():
                self._add(f"{dotted}.{name}", below)


@cache
def load_schema(engine: Engine) -> EngineSchema:
    """Load the engine's schema; it is composed at the first call (about 0.4 s)."""
    from hydra import compose, initialize_config_dir  # here: most processes never compose
    from omegaconf import OmegaConf

    folder = verl_folder()
    with _lock, initialize_config_dir(config_dir=str(folder / "trainer" / "config"), version_base=None):
        composed = compose(ROOT_CONFIGS[engine])
    tree: Any = OmegaConf.to_container(composed, resolve=False)
    return EngineSchema(engine, tree, _config_classes())


def verl_folder() -> Path:
    """Return the folder of the installed verl package. Raises ``EngineNotInstalled``."""
    spec = importlib.util.find_spec("verl")
    for location in (spec.submodule_search_locations or []) if spec else []:
        if (Path(location) / "trainer" / "config").is_dir():
            return Path(location)
    raise EngineNotInstalled("The package 'verl' is not installed in this environment.")


@lru_cache(maxsize=1)
def _config_classes() -> ConfigClasses:
    folder = verl_folder()
    return ConfigClasses(path for source in CLASS_SOURCES for path in sorted((folder / source).rglob("*.py")))


def _select(tree: Any, dotted: str) -> Any:
    for part in dotted.split("."):
        if not isinstance(tree, dict) or part not in tree:
            return None
        tree = tree[part]
    return tree


def _class_name(tree: Mapping[str, Any]) -> str:
    return str(tree.get("_target_", "")).rpartition(".")[2]


def _type_of(default: object) -> FieldType:
    """Infer the accepted types of a key from its default value alone."""
    if default is None or (isinstance(default, str) and ("${" in default or default == "???")):
        return ANY
    if isinstance(default, float):
        return FieldType(frozenset({"float"}))
    return FieldType(frozenset({type(default).__name__}))
