"""Fixtures that write model folders."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest
from trellis_testing.model_folders import write_model_folder, write_safetensors


class WriteModel(Protocol):
    """Writes a complete model into a new folder: 10,010 parameters, with a chat template."""

    def __call__(self, folder: Path, **config: Any) -> Path:
        """Entries of ``config`` replace those of config.json."""


@pytest.fixture
def write_weights() -> Callable[[Path, dict[str, tuple[str, list[int]]]], None]:
    """Writes a safetensors file."""
    return write_safetensors


@pytest.fixture
def write_model() -> WriteModel:
    """Writes model folders."""
    return write_model_folder
