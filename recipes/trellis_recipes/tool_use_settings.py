"""The settings of the tool-use pipeline with their defaults, and the parameters that they become.

A YAML file holds any part of ``ToolUseSettings``; what it does not name stays at preset and default.
"""

import json
from pathlib import Path
from typing import Any, Literal, get_args

import yaml
from pydantic import Field, ValidationError, model_validator
from trellis_contracts.recipe import Strict

from trellis_recipes.quantized_keys import BITS, read_bits, refuse_bits
from trellis_recipes.rewards import check_mixture

TaskName = Literal["tool_selection", "multi_step_planning", "timing_decision", "tool_retrieval"]
Algorithm = Literal["dpo", "ppo", "grpo"]
PresetName = Literal["development", "production"]
#: Weights that a preset is meant for.
PRESET_MODELS: dict[str, str] = {
    "development": "Qwen/Qwen2.5-1.5B-Instruct",
    "production": "Qwen/Qwen2.5-7B-Instruct",
}
_TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


class BadSettings(ValueError):
    """A file of settings cannot be used; says which key and why."""


class LoraSettings(Strict):
    """The adapter; rank 0 trains all weights."""

    r: int = Field(default=64, ge=0, le=512)
    alpha: int = Field(default=128, ge=1)
    dropout: float = Field(default=0.05, ge=0, lt=1)
    target_modules: list[str] = Field(default_factory=lambda: list(_TARGETS), min_length=1)


def _default_weights() -> dict[TaskName, float]:
    return {
        "tool_selection": 0.35,
        "multi_step_planning": 0.30,
        "timing_decision": 0.20,
        "tool_retrieval": 0.15,
    }


#: Other names of kinds of tasks, and of settings: those of the design that the pipeline follows.
TASK_NAMES = {"planning": "multi_step_planning", "timing": "timing_decision", "retrieval": "tool_retrieval"}
_SFT_NAMES = {"num_epochs": "epochs", "lr_scheduler": "lr_schedule"}
_LORA_PREFIX = "lora_"
_WARM_UP_NAMES = {"data_source": "data", "focus": "focus_tags"}
#: What a warm-up may be asked to focus on beside kinds of tasks.
_FOCUS_NAMES = {
    **TASK_NAMES,
    "tool_format_understanding": "tool_selection",
    "basic_planning_structure": "multi_step_planning",
}


class SFTSettings(Strict):
    """Supervised training on dialogs."""

    train_data: str = "agent_sft:train"
    dev_data: str = "agent_sft:dev"
    task_weights: dict[TaskName, float] = Field(default_factory=_default_weights)
    base_model: str = PRESET_MODELS["production"]
    max_length: int = Field(default=4096, ge=2)
    lora: LoraSettings = Field(default_factory=LoraSettings)
    epochs: int = Field(default=3, ge=1)
    batch_size: int = Field(default=4, ge=1)
    gradient_accumulation: int = Field(default=8, ge=1)
    learning_rate: float = Field(default=2e-5, ge=0)
    warmup_ratio: float = Field(default=0.1, ge=0, lt=1)
    lr_schedule: Literal["cosine", "linear", "constant_with_warmup"] = "cosine"
    #: Of the frozen base; also ``load_in_4bit`` and ``load_in_8bit``. None: as the preset has it.
    quantization: Literal["none", "8bit", "4bit"] | None = None
    use_coreset_selection: bool = False
    coreset_target_size: int = Field(default=1000, ge=1)
    coreset_strategy: Literal["loss_topk", "diversity", "hybrid", "random"] = "hybrid"
    use_online_continual: bool = False
    continual_buffer_size: int = Field(default=2048, ge=1)
    continual_replay_ratio: float = Field(default=0.25, ge=0, le=1)

    @model_validator(mode="before")
    @classmethod
    def _read_other_names(cls, given: Any) -> Any:
        """Read ``num_epochs``, ``lora_r`` and short names of tasks; both names of a setting are an error."""
        if not isinstance(given, dict):
            return given
        lora = {key: given[key] for key in given if isinstance(key, str) and key.startswith(_LORA_PREFIX)}
        found = _rename({key: value for key, value in given.items() if key not in lora}, _SFT_NAMES)
        found = read_bits(found)
        if lora:
            own = {key.removeprefix(_LORA_PREFIX): value for key, value in lora.items()}
            found["lora"] = _join(found.get("lora"), own)
        if isinstance(found.get("task_weights"), dict):
            found["task_weights"] = _rename(found["task_weights"], TASK_NAMES)
        return found

    @model_validator(mode="after")
    def _check_weights(self) -> "SFTSettings":
        weights = self.task_weights.values()
        if any(weight < 0 for weight in weights) or not sum(weights) > 0:
            raise ValueError("task_weights are shares from 0 on, of which one is above 0")
        return self

    def parameters(self, *, given_only: bool = False) -> dict[str, Any]:
        """Return values of the parameters of ``agent_sft``; only those that were set where ``given_only``."""
        names = _named(self, given_only)
        same = names - {"train_data", "dev_data", "task_weights", "base_model", "lora"}
        parameters = _without_none({name: getattr(self, name) for name in sorted(same)})
        if "lora" in names:
            parameters |= _lora_parameters(self.lora, given_only)
        if "task_weights" in names:
            full = {**dict.fromkeys(_default_weights(), 0.0), **self.task_weights}
            parameters |= {f"weight_{name}": weight for name, weight in full.items()}
        return parameters


class DPOSettings(Strict):
    """Preferences between two responses."""

    #: Of the frozen base; also ``load_in_4bit`` and ``load_in_8bit``. None: as the preset has it.
    quantization: Literal["none", "8bit", "4bit"] | None = None
    beta: float = Field(default=0.1, gt=0)
    reference_free: bool = False
    label_smoothing: float = Field(default=0.0, ge=0, lt=0.5)
    loss_type: Literal["sigmoid", "hinge", "ipo"] = "sigmoid"

    @model_validator(mode="before")
    @classmethod
    def _read_other_names(cls, given: Any) -> Any:
        """Read ``load_in_4bit`` and ``load_in_8bit`` as ``quantization``."""
        return read_bits(given) if isinstance(given, dict) else given

    def parameters(self, *, given_only: bool = False) -> dict[str, Any]:
        """Return values of the parameters of ``agent_dpo``."""
        return _without_none({name: getattr(self, name) for name in sorted(_named(self, given_only))})


class _OfVerl(Strict):
    """Settings of recipes on verl."""

    @model_validator(mode="before")
    @classmethod
    def _refuse_bits(cls, given: Any) -> Any:
        """Refuse ``load_in_4bit`` and ``load_in_8bit`` unless they are false."""
        return refuse_bits(given) if isinstance(given, dict) else given


class PPOSettings(_OfVerl):
    """Rollouts judged by a critic: ``num_rollouts`` in a step, ``chunk_size`` of them in an update."""

    kl_coef: float = Field(default=0.02, ge=0)
    clip_range: float = Field(default=0.2, gt=0)
    vf_coef: float = Field(default=0.5, gt=0)
    num_rollouts: int = Field(default=128, ge=1)
    chunk_size: int = Field(default=64, ge=1)

    def parameters(self, *, given_only: bool = False) -> dict[str, Any]:
        """Return values of the parameters of ``agent_ppo``."""
        return _renamed(self, PPO_PARAMETERS, given_only)


class GRPOSettings(_OfVerl):
    """Rollouts compared within their group."""

    group_size: int = Field(default=4, ge=1)
    beta: float = Field(default=0.1, ge=0)
    use_advantage: bool = True

    def parameters(self, *, given_only: bool = False) -> dict[str, Any]:
        """Return values of the parameters of ``agent_grpo``."""
        return _renamed(self, GRPO_PARAMETERS, given_only)


#: The recipes call these as the platform's others do.
PPO_PARAMETERS = {
    "kl_coef": "kl_reward_coefficient",
    "clip_range": "clip_ratio",
    "vf_coef": "value_coefficient",
    "num_rollouts": "batch_size",
    "chunk_size": "mini_batch_size",
}
GRPO_PARAMETERS = {"group_size": "group_size", "beta": "kl_coefficient", "use_advantage": "use_advantage"}


class RLSettings(Strict):
    """How the model is improved after supervised training."""

    algorithm: Algorithm = "dpo"

    @model_validator(mode="before")
    @classmethod
    def _read_other_names(cls, given: Any) -> Any:
        """Read ``dpo_config``, ``ppo_config`` and ``grpo_config`` as names of the parts."""
        names = {f"{name}_config": name for name in ("dpo", "ppo", "grpo")}
        return _rename(given, names) if isinstance(given, dict) else given

    dpo: DPOSettings = Field(default_factory=DPOSettings)
    ppo: PPOSettings = Field(default_factory=PPOSettings)
    grpo: GRPOSettings = Field(default_factory=GRPOSettings)

    def parameters(self, algorithm: Algorithm | None = None, *, given_only: bool = False) -> dict[str, Any]:
        """Return values of the parameters of the algorithm's recipe; of the chosen one if none is named."""
        part: DPOSettings | PPOSettings | GRPOSettings = getattr(self, algorithm or self.algorithm)
        return part.parameters(given_only=given_only)


class WarmUpSettings(Strict):
    """A short supervised training before the main one."""

    enabled: bool = False
    data: str = "agent_sft"
    samples: int = Field(default=1000, ge=1)
    focus_tags: list[TaskName] = Field(default_factory=list)

    @model_validator(mode="before")
    @classmethod
    def _read_other_names(cls, given: Any) -> Any:
        """Read ``data_source``, ``focus`` and the other names of what to focus on."""
        if not isinstance(given, dict):
            return given
        found = _rename(given, _WARM_UP_NAMES)
        if isinstance(tags := found.get("focus_tags"), list):
            found["focus_tags"] = [
                _FOCUS_NAMES.get(tag, tag) if isinstance(tag, str) else tag for tag in tags
            ]
        return found

    def parameters(self) -> dict[str, Any]:
        """Return the parameter values that the warm-up overrides in the supervised training."""
        return {"max_samples": self.samples, "focus_tags": ",".join(self.focus_tags)}


#: Parts of the reward by their other names, those of the design that the pipeline follows.
_PART_NAMES = {
    "task_completion": "completion",
    "tool_accuracy": "tool_f1",
    "timing_quality": "timing",
    "format_compliance": "format",
}


class RewardSettings(Strict):
    """The reward that ranks sampled pairs, and that ppo and grpo train with."""

    weights: dict[str, float] = Field(default_factory=dict)
    penalties: dict[str, float] = Field(default_factory=dict)
    compare_arguments: bool = True
    run_calls: bool = True

    @model_validator(mode="after")
    def _check_options(self) -> "RewardSettings":
        """Check the options against the catalog of rewards."""
        if issues := check_mixture(self.terms())[1]:
            raise ValueError("; ".join(issue.message for issue in issues))
        return self

    def terms(self) -> list[dict[str, Any]]:
        """Return the value of the recipes' parameter ``rewards``."""
        weights = {f"weight_{_PART_NAMES.get(name, name)}": value for name, value in self.weights.items()}
        penalties = {f"penalty_{name}": value for name, value in self.penalties.items()}
        switches = {"compare_arguments": self.compare_arguments, "run_calls": self.run_calls}
        return [{"name": "tool_use", "options": {**weights, **penalties, **switches}}]


class ToolUseSettings(Strict):
    """All of the pipeline."""

    preset: PresetName | None = None
    #: Of each stage that trains.
    gpus: int = Field(1, ge=1)
    sft: SFTSettings = Field(default_factory=SFTSettings)
    rl: RLSettings = Field(default_factory=RLSettings)
    #: None: the reward as it is.
    reward: RewardSettings | None = None
    warm_up: WarmUpSettings = Field(default_factory=WarmUpSettings)

    @model_validator(mode="before")
    @classmethod
    def _read_other_names(cls, given: Any) -> Any:
        """Read ``warmup``; raise an error that names the right part for a key that belongs in a part."""
        if not isinstance(given, dict):
            return given
        found = _rename(given, {"warmup": "warm_up"})
        unknown = [key for key in found if key not in cls.model_fields]
        told = {key: _explain_place(key) for key in unknown}
        if any(told.values()):
            raise ValueError("; ".join(told[key] or f"{key} is unknown" for key in unknown))
        return found

    def rl_parameters(
        self, algorithm: Algorithm | None = None, *, given_only: bool = False
    ) -> dict[str, Any]:
        """Return values of the parameters of the algorithm's recipe, including the reward."""
        parameters = self.rl.parameters(algorithm, given_only=given_only)
        return parameters if self.reward is None else {**parameters, "rewards": self.reward.terms()}

    def base_model(self, preset: str | None = None) -> str:
        """Return the initial model: the configured one, else the preset's, else the default."""
        chosen = preset or self.preset
        if "base_model" in self.sft.model_fields_set or chosen not in PRESET_MODELS:
            return self.sft.base_model
        return PRESET_MODELS[chosen]


def load_settings(path: Path) -> ToolUseSettings:
    """Load the settings in a YAML file; raises ``BadSettings`` naming every wrong key."""
    try:
        content = yaml.safe_load(path.read_text(encoding="utf-8"))
        return ToolUseSettings.model_validate(content or {})
    except (OSError, UnicodeDecodeError) as error:
        raise BadSettings(f"{path} cannot be read: {error}") from error
    except yaml.YAMLError as error:
        raise BadSettings(f"{path} is not YAML: {error}") from error
    except ValidationError as error:
        wrong = "; ".join(
            f"{'.'.join(str(part) for part in each['loc']) or 'the file'}: "
            f"{each['msg'].removeprefix('Value error, ')}"
            for each in error.errors()
        )
        raise BadSettings(f"{path}: {wrong}") from error


def read_weights(text: str) -> dict[TaskName, float]:
    """Read ``tool_selection=.5,timing=.5``, or the same as JSON, as weights; unnamed kinds get none."""
    weights: dict[str, Any] = {}
    if text.lstrip().startswith("{"):
        try:
            weights, text = json.loads(text), ""
        except ValueError as error:
            raise BadSettings(f"task weights are no JSON: {error}") from error
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, sign, value = part.partition("=")
        try:
            weights[name.strip()] = float(value)
        except ValueError:
            sign = ""
        if not sign:
            raise BadSettings(f"'{part}' is no weight: write NAME=SHARE, several with commas")
    try:
        return SFTSettings.model_validate({"task_weights": weights}).task_weights
    except ValidationError as error:
        known = ", ".join(_default_weights())
        reason = error.errors()[0]["msg"]
        raise BadSettings(f"task weights: {reason} (kinds of tasks: {known})") from error


def _explain_place(key: object) -> str | None:
    """Explain where a key beside the parts belongs; None for one that is in none of them."""
    if not isinstance(key, str):
        return None
    if key in get_args(PresetName):
        return (
            f"{key} is a preset, chosen with 'preset: {key}'; settings that differ from it go into 'sft:', "
            f"such as 'sft: {{base_model: {PRESET_MODELS[key]}, lora_r: 16}}'"
        )
    if key in {*SFTSettings.model_fields, *_SFT_NAMES, *BITS} or key.startswith(_LORA_PREFIX):
        return f"{key} belongs into 'sft:', as 'sft: {{{_SFT_NAMES.get(key, key)}: ...}}'"
    rl = key.removesuffix("_config")
    if rl in RLSettings.model_fields:
        return f"{key} belongs into 'rl:', as 'rl: {{{rl}: ...}}'"
    return None


def _rename(given: dict[Any, Any], names: dict[str, str]) -> dict[Any, Any]:
    """Rename settings to the current names. Raises ``ValueError`` if one is set under both names."""
    found: dict[Any, Any] = {}
    for key, value in given.items():
        name = names.get(key, key) if isinstance(key, str) else key
        if name in found:
            raise ValueError(f"{name} is set twice, once under another name")
        found[name] = value
    return found


def _join(given: Any, own: dict[str, Any]) -> dict[str, Any]:
    found = dict(given) if isinstance(given, dict) else {}
    if twice := sorted(set(found) & set(own)):
        raise ValueError(f"lora.{twice[0]} is set twice, once as lora_{twice[0]}")
    return {**found, **own}


def _without_none(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in parameters.items() if value is not None}


def _named(settings: Strict, given_only: bool) -> set[str]:
    return set(settings.model_fields_set if given_only else type(settings).model_fields)


def _renamed(settings: Strict, names: dict[str, str], given_only: bool) -> dict[str, Any]:
    chosen = _named(settings, given_only)
    return {parameter: getattr(settings, name) for name, parameter in names.items() if name in chosen}


def _lora_parameters(lora: LoraSettings, given_only: bool) -> dict[str, Any]:
    values = {
        "r": ("lora_rank", lora.r),
        "alpha": ("lora_alpha", lora.alpha),
        "dropout": ("lora_dropout", lora.dropout),
        "target_modules": ("lora_targets", ",".join(lora.target_modules)),
    }
    chosen = _named(lora, given_only)
    return {parameter: value for name, (parameter, value) in values.items() if name in chosen}
