"""verl's supervised dataset without verl's start-up, which imports Ray, tensordict and whole models.

The dataset's own module and what it needs of ``verl.utils`` are the installed ones, line by line; only
the packages around them are entered without running their ``__init__``. Not for a process that trains.
"""

import importlib
import importlib.util
import sys
import types
from pathlib import Path
from typing import Any

import yaml

#: Entered without what their ``__init__`` would import.
_PACKAGES = ("verl", "verl.utils", "verl.utils.dataset", "verl.models", "verl.models.transformers")
#: Only rows with images need what is in it.
_UNUSED = "verl.models.transformers.qwen2_vl"
_DATASET = "verl.utils.dataset.multiturn_sft_dataset"
_CONFIG = "trainer/config/sft_trainer_engine.yaml"


class AlreadyImported(RuntimeError):
    """verl was imported in the usual way before."""


def load_dataset_class() -> tuple[type[Any], Any, dict[str, Any]]:
    """Return the dataset class, the function that loads its tokenizer, and verl's data settings."""
    if "verl" in sys.modules:
        raise AlreadyImported("verl is there already; a process of its own is needed")
    spec = importlib.util.find_spec("verl")
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError("No module named 'verl'", name="verl")
    root = Path(spec.origin).parent
    for name in _PACKAGES:
        _enter(name, root)
    unused = types.ModuleType(_UNUSED)
    unused.__dict__["get_rope_index"] = None
    sys.modules[_UNUSED] = unused
    _spare_processors()
    tokenizer = importlib.import_module("verl.utils.tokenizer")
    sys.modules["verl.utils"].__dict__["hf_tokenizer"] = tokenizer.hf_tokenizer
    dataset: type[Any] = importlib.import_module(_DATASET).MultiTurnSFTDataset
    settings: dict[str, Any] = yaml.safe_load((root / _CONFIG).read_text())["data"]
    return dataset, tokenizer.hf_tokenizer, settings


def _enter(name: str, root: Path) -> None:
    package = types.ModuleType(name)
    package.__path__ = [str(root.joinpath(*name.split(".")[1:]))]
    sys.modules[name] = package
    parent, _, child = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], child, package)


def _spare_processors() -> None:
    """Replace image processors, used only in type hints: importing them takes longer than all the rest."""
    import transformers

    vars(transformers)["ProcessorMixin"] = type("ProcessorMixin", (), {})
