"""Modules that stored configurations name for verl to import: queued jobs need them after an upgrade, too."""

import importlib.util
import re
from pathlib import Path

import pytest
import trellis_recipes
import trellis_train

_NAMED = re.compile(r"pkg://([\w.]+)")
_FILES = [
    path
    for package in (trellis_recipes, trellis_train)
    for folder in package.__path__
    for path in Path(folder).rglob("*")
    if path.suffix in {".py", ".yaml"}
]
NAMED = sorted({name for path in _FILES for name in _NAMED.findall(path.read_text(encoding="utf-8"))})


def test_modules_are_named() -> None:
    assert "trellis_train.rewards.verl_adapter" in NAMED


@pytest.mark.parametrize("name", NAMED)
def test_a_module_that_configurations_name_exists(name: str) -> None:
    assert importlib.util.find_spec(name) is not None
