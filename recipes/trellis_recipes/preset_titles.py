"""Titles of presets: the machine, and the largest models that the memory estimate has room for on it.

The sizes are in ``preset_sizes.yaml``, which ``trellis_recipes.preset_sizes`` computes.
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

SIZES = Path(__file__).parent / "preset_sizes.yaml"
#: By id and number of GPUs: a recipe that trains on one GPU takes one of eight.
_MACHINES = {
    ("gpu-24gb", 1): ("One 24 GB GPU", "单张 24 GB 显卡"),
    ("gpu-80gb", 1): ("One 80 GB GPU", "单张 80 GB 显卡"),
    ("gpu-8x80gb", 8): ("Eight 80 GB GPUs", "八张 80 GB 显卡"),
    ("gpu-8x80gb", 1): ("One of eight 80 GB GPUs", "八张 80 GB 显卡中的一张"),
}
#: Presets that are made for a size of model, whatever the machine.
MODELS = {"development": "1.5B", "production": "7B"}
_PURPOSES = {"development": ("Development", "开发"), "production": ("Production", "生产")}
_COUNTS = {1: ("one", "单张"), 2: ("two", "两张"), 4: ("four", "四张"), 8: ("eight", "八张")}


@lru_cache(maxsize=1)
def read_sizes() -> dict[str, dict[str, dict[str, Any]]]:
    """Read the computed sizes for each recipe and preset."""
    found: dict[str, dict[str, dict[str, Any]]] = yaml.safe_load(SIZES.read_text(encoding="utf-8")) or {}
    return found


def add_titles(recipe: dict[str, Any]) -> None:
    """Give the presets of a recipe their titles, where they have none of their own."""
    sizes = read_sizes().get(str(recipe.get("id")), {})
    defaults = {parameter["name"]: parameter.get("default") for parameter in recipe.get("parameters", [])}
    for preset in recipe.get("presets", []):
        if "title" not in preset:
            values = {**defaults, **preset.get("params", {})}
            en, zh = _title(preset, values, sizes.get(preset["id"], {}))
            preset["title"] = {"en": en, "zh": zh}


def _title(preset: dict[str, Any], values: dict[str, Any], sizes: dict[str, Any]) -> tuple[str, str]:
    if preset["id"] in MODELS:
        return _title_of_model(preset, values, MODELS[preset["id"]], sizes.get("gpu_gb"))
    machine = _MACHINES[(preset["id"], preset["gpus"])]
    largest, with_adapter = sizes.get("largest"), sizes.get("largest_with_lora")
    if largest is None:
        return machine
    if values.get("lora_rank"):
        return f"{machine[0]} (up to {largest} with LoRA)", f"{machine[1]}（LoRA 最大 {largest}）"
    if with_adapter is None or with_adapter == largest:
        return f"{machine[0]} (up to {largest})", f"{machine[1]}（最大 {largest}）"
    en = f"{machine[0]} (up to {largest} in full, {with_adapter} with LoRA)"
    return en, f"{machine[1]}（全量最大 {largest}，LoRA 最大 {with_adapter}）"


def _title_of_model(
    preset: dict[str, Any], values: dict[str, Any], model: str, gpu_gb: int | None
) -> tuple[str, str]:
    """Return the titles of a preset that is made for one size of model."""
    en, zh = _PURPOSES[preset["id"]]
    bits = {"4bit": 4, "8bit": 8}.get(str(values.get("quantization")))
    base = (f"{model} in {bits} bits", f"{model}，{bits} 比特") if bits else (model, model)
    rank = values["lora_rank"]
    count = _COUNTS[preset["gpus"]]
    plural = "" if preset["gpus"] == 1 else "s"
    machine = (
        (f"; {count[0]} {gpu_gb} GB GPU{plural}", f"；{count[1]} {gpu_gb} GB 显卡") if gpu_gb else ("", "")
    )
    return f"{en} ({base[0]}, LoRA {rank}{machine[0]})", f"{zh}（{base[1]}，LoRA {rank}{machine[1]}）"
