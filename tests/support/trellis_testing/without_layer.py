"""Processes in which the layer for CPUs is switched off, and cannot be imported by mistake."""

import os
from pathlib import Path

from trellis_train.platform.layer import SWITCH_VARIABLE

#: Python imports a module of this name when it starts.
_AT_START = """
import sys

class Refused:
    @staticmethod
    def find_spec(name, path=None, target=None):
        if name.startswith("trellis_train.cpu"):
            raise ImportError(f"{name} is imported although it is switched off")

sys.meta_path.insert(0, Refused)
"""


def without_layer(folder: Path) -> dict[str, str]:
    """Return variables for a process and its children; ``folder`` gets the code that rejects the layer."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sitecustomize.py").write_text(_AT_START)
    others = os.environ.get("PYTHONPATH")
    return {SWITCH_VARIABLE: "0", "PYTHONPATH": f"{folder}:{others}" if others else str(folder)}
