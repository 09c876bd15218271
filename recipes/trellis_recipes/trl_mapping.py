"""From parameters to the settings of TRL's trainers."""

from typing import Any

from trellis_contracts.recipe import Preset, Recipe

from trellis_recipes.mapping import AT_THE_END, Settings, plain_settings
from trellis_recipes.recipe_parameters import Value
from trellis_recipes.request import ComposeRequest

#: Recipes of TRL's DPO trainer, which takes a list of losses.
DPO_RECIPES = frozenset({"agent_dpo", "dpo"})
#: The mean log-ratio of a token that IPO drives at is 1 / (2 tau), a half here.
TAU_OF_IPO = 1.0
_BITS = {"none": 0, "8bit": 8, "4bit": 4}
#: PEFT's own name for every linear layer.
ALL_LINEAR = "all-linear"
#: Robust DPO is the sigmoid loss that allows for labels which are wrong; with no such labels, the same.
ROBUST = "robust"


def settings_of(
    recipe: Recipe,
    preset: Preset | None,
    request: ComposeRequest,
    parameters: dict[str, Value],
    own: dict[str, Any],
    *,
    has_validation: bool,
) -> Settings:
    """Return all settings but those of the launch part, in the order in which they apply."""
    return {
        **recipe.fixed,
        **_loss(recipe, parameters),
        **_model(recipe, request, parameters),
        **plain_settings(recipe, parameters),
        **_run(parameters, has_validation=has_validation),
        **(preset.overrides if preset else {}),
        **own,
        **_platform(request, parameters),
    }


def apply_loss_defaults(
    recipe: Recipe, preset: Preset | None, request: ComposeRequest, parameters: dict[str, Value]
) -> None:
    """Give IPO its own tau where nobody has said one: TRL averages its log-ratios over tokens."""
    is_said = "beta" in request.params or (preset is not None and "beta" in preset.params)
    if recipe.id in DPO_RECIPES and parameters["loss_type"] == "ipo" and not is_said:
        parameters["beta"] = TAU_OF_IPO


def count_accumulations(request: ComposeRequest, parameters: dict[str, Value]) -> int:
    """Return the gradient accumulation steps per GPU; other checks report an uneven division."""
    if "gradient_accumulation" in parameters:
        return whole(parameters["gradient_accumulation"], 1)
    return max(1, whole(parameters["batch_size"], 1) // (request.gpus * rows_per_pass(parameters)))


def rows_per_pass(parameters: dict[str, Value]) -> int:
    """Return the rows in one pass on one GPU: recipes with passes per step count their batch by pass."""
    is_by_pass = "gradient_accumulation" in parameters
    return whole(parameters["batch_size" if is_by_pass else "micro_batch_size"], 1)


def rows_per_step(request: ComposeRequest, parameters: dict[str, Value]) -> int:
    """Return the rows of one update, over all GPUs."""
    if "gradient_accumulation" in parameters:
        return rows_per_pass(parameters) * count_accumulations(request, parameters) * request.gpus
    return whole(parameters["batch_size"], 1)


def bits_of_base(parameters: dict[str, Value]) -> int:
    """Return the number of bits of a frozen base model; 0 where it is not quantised."""
    if "quantization" in parameters:
        return _BITS[str(parameters["quantization"])]
    return 4 if parameters.get("quantize_base") else 0


def adapted_modules(parameters: dict[str, Value]) -> list[str]:
    """Return the names of the layers that get an adapter."""
    given = parameters.get("lora_targets", ALL_LINEAR)
    return [name.strip() for name in str(given).split(",") if name.strip()]


def _loss(recipe: Recipe, parameters: dict[str, Value]) -> Settings:
    """Return the loss as a list, because DPO takes a list of losses."""
    if recipe.id not in DPO_RECIPES:
        return {}
    is_robust = parameters["loss_type"] == "sigmoid" and parameters["label_smoothing"]
    return {"loss_type": [ROBUST if is_robust else parameters["loss_type"]]}


def _model(recipe: Recipe, request: ComposeRequest, parameters: dict[str, Value]) -> Settings:
    """Return precision, adapter and quantisation.

    Weights that are trained are held in full precision and computed with in bfloat16 on a GPU; a
    frozen base is held in bfloat16 there. On a CPU everything is in full precision.
    """
    is_adapter, is_gpu = bool(parameters["lora_rank"]), request.platform != "cpu"
    settings: Settings = {"dtype": "bfloat16" if is_gpu and is_adapter else "float32", "bf16": is_gpu}
    if not is_adapter:
        return settings
    settings |= {
        "use_peft": True,
        "lora_r": parameters["lora_rank"],
        "lora_target_modules": adapted_modules(parameters),
    }
    if recipe.id == "reward_model":
        # The head that scores is new: it has to be trained whole, and saved with the adapter.
        settings |= {"lora_task_type": "SEQ_CLS", "lora_modules_to_save": ["score"]}
    bits = bits_of_base(parameters)
    if bits == 4:
        settings |= {"load_in_4bit": True, "use_bnb_nested_quant": True}
    elif bits == 8:
        settings |= {"load_in_8bit": True}
    return settings


def _run(parameters: dict[str, Value], *, has_validation: bool) -> Settings:
    """Return length, intervals and seeds."""
    return {
        "num_train_epochs": float(whole(parameters["epochs"], 1)),
        "save_strategy": "steps",
        "save_steps": parameters["save_every"] or AT_THE_END,
        "eval_strategy": "steps" if has_validation else "no",
        "eval_steps": parameters["validate_every"] or AT_THE_END,
        "seed": parameters["seed"],
        "data_seed": parameters["seed"],
    }


def _platform(request: ComposeRequest, parameters: dict[str, Value]) -> Settings:
    """Return the settings of how the run takes place, which no person can change."""
    micro = rows_per_pass(parameters)
    is_cpu = request.platform == "cpu"
    return {
        "per_device_train_batch_size": micro,
        "per_device_eval_batch_size": micro,
        "gradient_accumulation_steps": count_accumulations(request, parameters),
        "use_cpu": is_cpu,
        "ddp_backend": "gloo" if is_cpu and request.gpus > 1 else None,
        "dataloader_pin_memory": not is_cpu,
        "logging_steps": 1,
        "logging_nan_inf_filter": False,
        "disable_tqdm": True,
        "report_to": "none",
    }


def whole(value: Value, fallback: int) -> int:
    """Return the parameter's value if it is an integer, else the fallback."""
    return value if isinstance(value, int) else fallback
