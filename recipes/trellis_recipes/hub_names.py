"""How hubs name models (``owner/name``, ``modelscope:owner/name@tag``), and which files are fetched."""

import re
from pathlib import PurePosixPath

CONFIG_FILE = "config.json"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
#: Before the name of a model on ModelScope, after which ``@`` and a branch or tag may stand.
MODELSCOPE = "modelscope:"
_REVISION = re.compile(r"[A-Za-z0-9][\w./-]{0,99}")
#: What training needs. Pickled weights are left out: loading them can run code.
PATTERNS = ["*.safetensors", "*.json", "*.model", "*.txt", "*.jinja", "*.tiktoken", "README.md", "LICENSE*"]


class NoHubModel(ValueError):
    """A model cannot be had from the hub; says why."""


def is_hub_id(name: str) -> bool:
    """Tell whether a name is one of the hub's.

    >>> is_hub_id("Qwen/Qwen3-0.6B"), is_hub_id("/models/qwen"), is_hub_id("qwen")
    (True, False, False)
    """
    return _HUB_ID.fullmatch(name) is not None


def is_hub_model(name: str) -> bool:
    """Tell whether a name is one of a hub's models.

    >>> is_hub_model("Qwen/Qwen3-0.6B"), is_hub_model("modelscope:Qwen/Qwen3-0.6B@v1"), is_hub_model("qwen")
    (True, True, False)
    """
    if not name.startswith(MODELSCOPE):
        return is_hub_id(name)
    repository, at, revision = name.removeprefix(MODELSCOPE).partition("@")
    return is_hub_id(repository) and (not at or _REVISION.fullmatch(revision) is not None)


def is_needed(file: str) -> bool:
    """Tell whether a file of a model's repository is fetched."""
    return any(PurePosixPath(file).match(pattern) for pattern in PATTERNS)
