"""Loads what was written once, as whoever uses it will: a model that cannot be loaded is no model."""

from pathlib import Path

import torch
from peft import PeftConfig
from safetensors import SafetensorError, safe_open
from transformers import AutoConfig, AutoTokenizer

from trellis_train.export.errors import ExportUnsound
from trellis_train.export.layout import ADAPTER_WEIGHTS_FILE, has_weights
from trellis_train.export.writing import choose_auto_class

#: Above this, the files' headers are read instead: loading would take minutes and as much memory again.
MAX_PARAMETERS_TO_RUN = 1_000_000_000
_PROBE_TOKENS = 8


def check_model(folder: Path) -> str:
    """Load a whole model and let it compute; what was found, in a sentence. Raises ``ExportUnsound``."""
    if not has_weights(folder):
        raise ExportUnsound("The exported weights are incomplete.")
    count = _count_parameters(sorted(folder.glob("*.safetensors")))
    try:
        config = AutoConfig.from_pretrained(folder)
        tokenizer = AutoTokenizer.from_pretrained(folder)
    except (OSError, ValueError, KeyError) as error:
        raise ExportUnsound(f"The configuration or tokenizer cannot be loaded: {error}") from error
    if count > MAX_PARAMETERS_TO_RUN:
        return f"{count:,} parameters; file headers match the file sizes."
    model, report = choose_auto_class(config).from_pretrained(folder, dtype="auto", output_loading_info=True)
    if report["missing_keys"]:
        raise ExportUnsound(f"The weights are missing '{min(report['missing_keys'])}'.")
    vocabulary = config.get_text_config().vocab_size
    tokens = torch.arange(_PROBE_TOKENS).remainder(vocabulary)[None]
    if model.config.pad_token_id is None:
        model.config.pad_token_id = tokenizer.pad_token_id
    with torch.no_grad():
        # Logits, or the last hidden states of a model without a head.
        values = model.eval()(input_ids=tokens, attention_mask=torch.ones_like(tokens))[0]
    if not torch.isfinite(values).all():
        raise ExportUnsound("The model's outputs are NaN or infinite.")
    return f"{count:,} parameters in {model.dtype}; loads and runs."


def check_adapter(folder: Path) -> str:
    """Open an adapter; what was found, in a sentence. Raises ``ExportUnsound``."""
    try:
        config = PeftConfig.from_pretrained(str(folder))
    except (OSError, ValueError, TypeError) as error:
        raise ExportUnsound(f"The adapter's configuration cannot be loaded: {error}") from error
    count = _count_parameters([folder / ADAPTER_WEIGHTS_FILE])
    return f"Adapter with {count:,} parameters for {config.base_model_name_or_path}."


def _count_parameters(files: list[Path]) -> int:
    """Count by the files' headers, which the library checks against the files' sizes."""
    count = 0
    for path in files:
        try:
            with safe_open(path, framework="pt") as file:
                for key in file.keys():  # noqa: SIM118 - not a mapping
                    count += torch.Size(file.get_slice(key).get_shape()).numel()
        except (SafetensorError, OSError) as error:
            raise ExportUnsound(f"{path.name} cannot be read: {error}") from error
    if not count:
        raise ExportUnsound("No weights were written.")
    return count
