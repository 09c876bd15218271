"""The starter model, written once."""

from pathlib import Path

import pytest
from trellis_train.starter.__main__ import main as make_starter


@pytest.fixture(scope="session")
def starter_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """0.8M parameters from a seed, taught nothing; a context of 4,096 bytes."""
    folder = tmp_path_factory.mktemp("starter")
    make_starter(["--model", str(folder), "--seed", "0"])
    return folder
