"""Models named as a hub names them, brought here once: ``owner/name``, ``modelscope:owner/name@tag``.

The hub's own variables say where it is, with which token, and where its files are kept (``HF_ENDPOINT``,
``HF_TOKEN``, ``HF_HOME``, ``HF_HUB_OFFLINE``; ``MODELSCOPE_ENDPOINT``, ``MODELSCOPE_API_TOKEN``).
"""

import os
import re
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from trellis_recipes.quantized_keys import check_weights_name

if TYPE_CHECKING:  # it imports httpx
    from trellis_recipes.modelscope import ModelScopeFiles

CONFIG_FILE = "config.json"
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
#: Before the name of a model on ModelScope, after which ``@`` and a branch or tag may stand.
MODELSCOPE = "modelscope:"
_REVISION = re.compile(r"[A-Za-z0-9][\w./-]{0,99}")
#: What training needs. Pickled weights are left out: loading them can run code.
PATTERNS = ["*.safetensors", "*.json", "*.model", "*.txt", "*.jinja", "*.tiktoken", "README.md", "LICENSE*"]
#: Weights in other forms than the one that is loaded.
_OTHER_FORMS = ["*.bin", "*.pth", "*.gguf"]
_MAX_REASON = 300


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


def fetch_model(name: str, *, has_weights: bool = True, modelscope: "ModelScopeFiles | None" = None) -> str:
    """Return the local folder of a hub model, downloading it if needed.

    Without ``has_weights`` only its configuration is looked up. ``modelscope`` is its client, where the
    addresses that it opens are restricted. Raises ``NoHubModel``, and ``ValueError`` for
    a name of weights that cannot be trained.
    """
    check_weights_name(name)
    if name.startswith(MODELSCOPE):
        from trellis_recipes.modelscope_cache import fetch_from_modelscope

        repository, _, revision = name.removeprefix(MODELSCOPE).partition("@")
        if not is_hub_model(name):
            raise NoHubModel("it is not named as modelscope:owner/name or modelscope:owner/name@revision")
        return str(
            fetch_from_modelscope(
                repository, revision=revision or None, has_weights=has_weights, source=modelscope
            )
        )
    from huggingface_hub import hf_hub_download, snapshot_download

    token, endpoint = os.environ.get("HF_TOKEN") or None, os.environ.get("HF_ENDPOINT") or None
    try:
        if not has_weights:
            return str(Path(hf_hub_download(name, CONFIG_FILE, token=token, endpoint=endpoint)).parent)
        folder = snapshot_download(name, token=token, endpoint=endpoint, ignore_patterns=_OTHER_FORMS)
    except (OSError, ValueError) as error:  # the hub's own errors are of these kinds
        raise NoHubModel(first_line(error)) from error
    if not (Path(folder) / CONFIG_FILE).is_file():
        raise NoHubModel(f"it has no {CONFIG_FILE}")
    return folder


def first_line(error: Exception) -> str:
    """Return the first line of an error message; the hub's errors have paragraphs of advice."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[0] if lines else type(error).__name__)[:_MAX_REASON]
