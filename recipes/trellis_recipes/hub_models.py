"""Models named as a hub names them, brought here once: ``owner/name``, ``modelscope:owner/name@tag``.

The hub's own variables say where it is, with which token, and where its files are kept (``HF_ENDPOINT``,
``HF_TOKEN``, ``HF_HOME``, ``HF_HUB_OFFLINE``; ``MODELSCOPE_ENDPOINT``, ``MODELSCOPE_API_TOKEN``).
"""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from trellis_recipes.hub_names import CONFIG_FILE, MODELSCOPE, NoHubModel, is_hub_model
from trellis_recipes.quantized_keys import check_weights_name

if TYPE_CHECKING:  # it imports httpx
    from trellis_recipes.modelscope import ModelScopeFiles

#: Weights in other forms than the one that is loaded.
_OTHER_FORMS = ["*.bin", "*.pth", "*.gguf"]
_MAX_REASON = 300


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
