"""Patching modules when they are imported."""

import sys
from importlib import import_module
from pathlib import Path

import pytest
from trellis_train.compat.imports import patch_after_import


@pytest.fixture
def module_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "patched_example.py").write_text("value = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "patched_example", raising=False)
    return "patched_example"


def test_a_module_is_patched_when_it_is_imported_and_not_before(module_name: str) -> None:
    patch_after_import(module_name, lambda module: setattr(module, "value", 2))
    assert module_name not in sys.modules

    module = import_module(module_name)

    assert module.value == 2


def test_a_module_that_is_imported_already_is_patched_at_once(module_name: str) -> None:
    module = import_module(module_name)

    patch_after_import(module_name, lambda module: setattr(module, "value", 3))

    assert module.value == 3


def test_a_patched_module_keeps_its_own_loader(module_name: str) -> None:
    patch_after_import(module_name, lambda module: None)

    module = import_module(module_name)

    assert module.__spec__ is not None
    assert module.__loader__ is module.__spec__.loader
    assert "trellis" not in type(module.__loader__).__module__


def test_two_patches_of_one_module_both_apply(module_name: str) -> None:
    patch_after_import(module_name, lambda module: setattr(module, "first", True))
    patch_after_import(module_name, lambda module: setattr(module, "second", True))

    module = import_module(module_name)

    assert (module.first, module.second) == (True, True)
