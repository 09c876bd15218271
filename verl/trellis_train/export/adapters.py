"""Adapters: written alone in PEFT's format, or folded into the weights of their base model."""

import json
import shutil
from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, PeftModel
from safetensors.torch import load_file, save_file
from transformers import AutoConfig, AutoModelForSequenceClassification

from trellis_train.export.errors import CheckpointIncomplete, CheckpointMismatch
from trellis_train.export.layout import ADAPTER_CONFIG_FILE, ADAPTER_WEIGHTS_FILE, Layout
from trellis_train.export.shards import gather, take_adapter
from trellis_train.export.writing import cast, choose_auto_class, copy_companions

_SEQUENCE_TASK = "SEQ_CLS"
_MERGE_DTYPE = torch.float32


def write_adapter(layout: Layout, *, base: Path, output: Path) -> None:
    """Write the checkpoint's adapter alone; its configuration names the base model."""
    output.mkdir(parents=True, exist_ok=True)
    if layout.adapter is not None:
        _copy_adapter(layout.adapter, base=base, output=output)
    elif layout.shards is not None and layout.lora is not None:
        weights = take_adapter(gather(layout.shards))
        config = _describe_lora(weights, layout.lora, base=base)
        (output / ADAPTER_CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n")
        tensors = {key: tensor.contiguous() for key, tensor in weights.items()}
        save_file(tensors, output / ADAPTER_WEIGHTS_FILE, metadata={"format": "pt"})
    else:
        raise CheckpointMismatch("The checkpoint contains no adapter.")
    for folder in (base, layout.config):
        if folder is not None:
            copy_companions(folder, output)


def merge_adapter(adapter: Path, *, base: Path, output: Path, dtype: torch.dtype | None) -> None:
    """Fold the adapter in ``adapter`` into its base model (in float32) and write the whole."""
    if not (base / "config.json").is_file():
        raise CheckpointIncomplete(f"The adapter's base model was not found at {base}.")
    config = json.loads((adapter / ADAPTER_CONFIG_FILE).read_text())
    model = PeftModel.from_pretrained(_load_base(config, base), adapter)
    _require_all_loaded(model, adapter)
    merged: Any = model.merge_and_unload()
    target = dtype or _MERGE_DTYPE
    merged.to(target)
    merged.config.dtype = target
    merged.save_pretrained(output)
    copy_companions(base, output)
    copy_companions(adapter, output)


def _load_base(adapter_config: dict[str, Any], base: Path) -> Any:
    if adapter_config.get("task_type") == _SEQUENCE_TASK:
        config = AutoConfig.from_pretrained(base)
        is_scorer = "ForSequenceClassification" in (config.architectures or [""])[0]
        # A reward model on a language model's weights: one score, whose head comes with the adapter.
        more = {} if is_scorer else {"num_labels": 1}
        model = AutoModelForSequenceClassification.from_pretrained(base, dtype=_MERGE_DTYPE, **more)
        if model.config.pad_token_id is None:
            model.config.pad_token_id = model.config.eos_token_id
        return model
    config = AutoConfig.from_pretrained(base)
    return choose_auto_class(config).from_pretrained(base, dtype=_MERGE_DTYPE)


def _require_all_loaded(model: Any, adapter: Path) -> None:
    """Require that every adapter weight was loaded; PEFT skips weights that it finds no place for."""
    from peft import get_peft_model_state_dict

    # Embeddings that the adapter does not hold are not of interest, so none are added.
    loaded = get_peft_model_state_dict(model, save_embedding_layers=False)
    saved = load_file(adapter / ADAPTER_WEIGHTS_FILE)
    lost = [key for key, tensor in saved.items() if key in loaded and not _is_same(loaded[key], tensor)]
    lost += [key for key in saved if key not in loaded and "lora_" in key]
    if lost:
        raise CheckpointMismatch(
            f"The adapter's '{sorted(lost)[0]}' has no matching module in the base model."
        )


def _is_same(loaded: torch.Tensor, saved: torch.Tensor) -> bool:
    return loaded.shape == saved.shape and torch.equal(cast(saved, loaded.dtype), loaded)


def _copy_adapter(source: Path, *, base: Path, output: Path) -> None:
    if not (source / ADAPTER_WEIGHTS_FILE).is_file():
        raise CheckpointIncomplete(f"The checkpoint is missing {ADAPTER_WEIGHTS_FILE}.")
    shutil.copyfile(source / ADAPTER_WEIGHTS_FILE, output / ADAPTER_WEIGHTS_FILE)
    config = json.loads((source / ADAPTER_CONFIG_FILE).read_text())
    config["base_model_name_or_path"] = str(base)
    (output / ADAPTER_CONFIG_FILE).write_text(json.dumps(config, indent=2) + "\n")
    copy_companions(source, output)


def _describe_lora(weights: dict[str, torch.Tensor], meta: dict[str, Any], *, base: Path) -> dict[str, Any]:
    """Build PEFT's configuration of an adapter that verl trained: rank and alpha are beside its shards."""
    if not meta.get("r") or not meta.get("lora_alpha"):
        raise CheckpointIncomplete("The checkpoint is missing the rank and alpha of its adapter.")
    rank = int(meta["r"])
    for key, tensor in weights.items():
        if ".lora_A." in key and tensor.shape[0] != rank:
            raise CheckpointMismatch(
                f"'{key}' has rank {tensor.shape[0]}, but the checkpoint's LoRA rank is {rank}."
            )
    config = LoraConfig(
        r=rank,
        lora_alpha=int(meta["lora_alpha"]),
        # Whole names of modules: a part of a name could stand for modules that were not trained.
        target_modules=sorted({_module_of(key) for key in weights}),
        task_type=meta.get("task_type") or "CAUSAL_LM",
        base_model_name_or_path=str(base),
        inference_mode=True,
    ).to_dict()
    return {name: _plain(value) for name, value in config.items()}


def _module_of(key: str) -> str:
    return key.removeprefix("base_model.model.").split(".lora_")[0]


def _plain(value: Any) -> Any:
    if isinstance(value, set):
        return sorted(value)
    return getattr(value, "value", value)
