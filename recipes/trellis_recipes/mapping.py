"""From parameters to engine settings, where a parameter's value cannot be handed over as it is."""

from typing import Any

from trellis_contracts.recipe import Engine, Recipe

from trellis_recipes import platform_defaults
from trellis_recipes.recipe_parameters import Value
from trellis_recipes.request import ComposeRequest
from trellis_recipes.rewards import check_mixture

#: verl stops at the first of steps and epochs, and then without the final checkpoint.
ENDLESS_EPOCHS = 1_000_000
#: An interval that is never reached: verl saves at the last step only where an interval is set.
AT_THE_END = 2_147_483_647
#: Files in this form can be given to the next job as its model.
CHECKPOINT_CONTENTS = ["model", "optimizer", "extra", "hf_model"]
SEEDS = {
    Engine.VERL_PPO: (
        "actor_rollout_ref.actor.data_loader_seed",
        "actor_rollout_ref.actor.fsdp_config.seed",
        "actor_rollout_ref.rollout.seed",
        "critic.data_loader_seed",
        "critic.fsdp.seed",
        "data.seed",
    ),
    Engine.VERL_SFT: ("engine.seed", "trainer.seed"),
}
#: Our own estimator: a response's reward is its advantage (``trellis_train.hooks.reward_alone``).
REWARD_ALONE = "reward_alone"
#: Imported by verl's reward workers, never by the API.
REWARD_MODULE = "pkg://trellis_train.rewards.verl_adapter"

Settings = dict[str, Any]


def plain_settings(recipe: Recipe, parameters: dict[str, Value]) -> Settings:
    """Return the settings of the parameters that name their engine keys directly."""
    return {
        key: parameters[parameter.name]
        for parameter in recipe.parameters
        for key in parameter.engine_keys
        if parameters[parameter.name] is not None
    }


def algorithm_settings(parameters: dict[str, Value]) -> Settings:
    """Translate parameters of RL recipes that are expressed differently in the engine's settings."""
    settings: Settings = {}
    if (level := parameters.get("importance_correction")) in ("token", "sequence"):
        settings["algorithm.rollout_correction.rollout_is"] = level
    if parameters.get("old_log_probs") == "sampler":
        settings["algorithm.rollout_correction.bypass_mode"] = True
        # The pass that is saved would have given the entropy, too.
        settings["actor_rollout_ref.actor.calculate_entropy"] = True
    if parameters.get("use_advantage") is False:
        settings["algorithm.adv_estimator"] = REWARD_ALONE
    if weight := _number(parameters, "value_coefficient"):
        # AdamW moves a separate critic the same way whatever its loss is multiplied by; only the limit of
        # the gradient's norm heeds it.
        settings["critic.optim.clip_grad"] = _number(parameters, "critic_grad_clip") / weight
    return settings


def platform_settings(engine: Engine, request: ComposeRequest, *, has_validation: bool) -> Settings:
    """Return the settings of how the run takes place, which no person can change."""
    settings: Settings = {
        "trainer.device": platform_defaults.device(request.platform),
        "trainer.experiment_name": request.recipe,
        "trainer.logger": ["console"],
        "trainer.project_name": "trellis",
    }
    if engine is Engine.VERL_PPO and not has_validation:
        # It always opens a validation file; a single row costs nothing.
        settings["data.val_max_samples"] = 1
    return settings


def run_settings(engine: Engine, parameters: dict[str, Value], has_validation: bool) -> Settings:
    """Return length, intervals and seeds in the engine's own terms."""
    settings: Settings = {
        "trainer.total_epochs": ENDLESS_EPOCHS if parameters["total_steps"] else parameters["epochs"],
        "trainer.save_freq": parameters["save_every"] or AT_THE_END,
        "trainer.test_freq": (parameters["validate_every"] or -1) if has_validation else -1,
    }
    if engine is Engine.VERL_PPO:
        settings["trainer.val_before_train"] = bool(parameters["validate_before"]) and has_validation
    return {**settings, **dict.fromkeys(SEEDS[engine], parameters["seed"])}


def engine_settings(engine: Engine, parameters: dict[str, Value]) -> Settings:
    """Return the settings that all recipes of an engine have in common."""
    # A LoRA checkpoint's weights are base and adapter side by side, which no one can load as a model.
    contents = CHECKPOINT_CONTENTS if not parameters.get("lora_rank") else CHECKPOINT_CONTENTS[:-1]
    if engine is Engine.VERL_SFT:
        return {"checkpoint.save_contents": contents, "engine.strategy": "fsdp2"}
    settings: Settings = {
        "actor_rollout_ref.actor.checkpoint.save_contents": contents,
        "actor_rollout_ref.actor.strategy": "fsdp2",
        "actor_rollout_ref.rollout.name": "vllm",
        "critic.strategy": "fsdp2",
        "data.filter_overlong_prompts": True,
    }
    # An agent's loop scores its episodes itself.
    if mixture := reward_mixture(parameters):
        settings["reward.custom_reward_function.name"] = "compute_score"
        settings["reward.custom_reward_function.path"] = REWARD_MODULE
        settings["reward.custom_reward_function.reward_kwargs"] = {"rewards": mixture}
        if any(term["name"] == "reward_model" for term in mixture):
            # Each reward worker loads the whole model, and verl starts eight where nothing else is said.
            settings["reward.num_workers"] = 1
    return settings


def adapter_settings(engine: Engine, parameters: dict[str, Value], platform: str) -> Settings:
    """Return how an adapter's base is stored, and how the adapter is sent to the rollout engine.

    On a GPU the base is held in bfloat16, in which it is computed with anyway; PEFT keeps the adapter in full
    precision. A rollout engine on a CPU gets base and adapter as one: with the adapter apart each token took
    3 times as long (12.2 s of a step instead of 3.7 s, 135 M parameters).
    """
    if not parameters.get("lora_rank"):
        return {}
    if platform == "cpu":
        return {"actor_rollout_ref.model.lora.merge": True} if engine is Engine.VERL_PPO else {}
    key = "engine" if engine is Engine.VERL_SFT else "actor_rollout_ref.actor.fsdp_config"
    return {f"{key}.model_dtype": "bfloat16"}


def reward_mixture(parameters: dict[str, Value]) -> list[dict[str, Any]]:
    """Return the weighted rewards of the run; the first one decides whether a response is correct.

    None where the recipe has no parameters for them.
    """
    if isinstance(given := parameters.get("rewards"), list):
        terms, issues = check_mixture(given)
        return given if issues else [term.model_dump() for term in terms]
    if "reward" not in parameters:
        return []
    format_weight = _number(parameters, "format_weight")
    options = {"pattern": parameters["reward_pattern"]} if parameters["reward"] == "regex" else {}
    mixture: list[dict[str, Any]] = [
        # Without the last digits of a difference between two decimal shares.
        {"name": parameters["reward"], "weight": round(1.0 - format_weight, 12), "options": options}
    ]
    if format_weight:
        mixture.append({"name": "format", "weight": format_weight, "options": {}})
    if penalty := parameters.get("length_penalty"):
        free = {"free_length": parameters["length_penalty_from"]}
        mixture.append({"name": "length", "weight": penalty, "options": free})
    return mixture


def _number(parameters: dict[str, Value], name: str) -> float:
    value = parameters.get(name)
    return float(value) if isinstance(value, int | float) else 0.0


def derived_settings(engine: Engine, config: Settings) -> Settings:
    """Return the settings that follow from others; ``config`` holds those set so far, by dotted key."""
    if engine is not Engine.VERL_PPO:
        return {}
    validation_temperature = config["actor_rollout_ref.rollout.val_kwargs.temperature"]
    longest = config["data.max_prompt_length"] + config["data.max_response_length"]
    derived: Settings = {
        "actor_rollout_ref.rollout.max_model_len": longest,
        "actor_rollout_ref.rollout.val_kwargs.do_sample": validation_temperature > 0,
    }
    if config["actor_rollout_ref.model.lora_rank"]:
        # The rollout engine starts from the base weights and receives the adapter only.
        derived["actor_rollout_ref.rollout.load_format"] = "safetensors"
    if config.get("actor_rollout_ref.actor.loss_agg_mode") == "seq-mean-token-sum-norm":
        # Else verl divides by the longest response of each pass, which differs from pass to pass.
        derived["actor_rollout_ref.actor.loss_scale_factor"] = config["data.max_response_length"]
    if config.get("reward.reward_manager.name") == "dapo":
        derived["reward.reward_kwargs.max_resp_len"] = config["data.max_response_length"]
    return derived
