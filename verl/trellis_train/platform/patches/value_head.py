"""Critic and reward heads hard-code flash attention, which has no CPU kernel."""

from types import ModuleType
from typing import Any

from trellis_train.platform.imports import require

MODULE = "verl.utils.model"
FUNCTION = "load_valuehead_model"


def patch(module: ModuleType) -> None:
    """Load value heads with PyTorch's own attention (``sdpa``)."""
    require(module, FUNCTION)

    def load_valuehead_model(
        local_path: str, torch_dtype: Any, model_config: Any, trust_remote_code: bool
    ) -> Any:
        from transformers import AutoModelForTokenClassification

        return AutoModelForTokenClassification.from_pretrained(
            local_path,
            dtype=torch_dtype,
            config=model_config,
            attn_implementation="sdpa",
            trust_remote_code=trust_remote_code,
        )

    setattr(module, FUNCTION, load_valuehead_model)
