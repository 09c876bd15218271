"""Which of the metrics that alarms watch a run has to log: taken from the rules, so that none is left out."""

from collections.abc import Callable, Mapping
from typing import Any

from trellis_api.jobs.alarms.rules import RULES
from trellis_contracts.recipe import Engine

Config = Mapping[str, Any]

WATCHED = frozenset(key for rule in RULES for key in rule.keys)
#: verl's SFT trainer names its metrics after the data that they are measured on; TRL's have no folder.
_OF_SUPERVISED = ("train/", "val/")
#: Recipes whose sessions may fail.
_OF_WORKFLOWS = ("tune",)


def watched_metrics(engine: Engine, recipe: str, config: Config) -> set[str]:
    """Return the metrics that a run of this configuration logs, where its engine uses the rules' names."""
    if engine is Engine.TRL:
        return {key for key in WATCHED if "/" not in key and (key != "kl" or recipe == "kto")}
    if engine is Engine.VERL_SFT:
        return {key for key in WATCHED if key.startswith(_OF_SUPERVISED)}
    assert engine is Engine.VERL_PPO
    of_reinforcement = {key for key in WATCHED if "/" in key and not key.startswith(_OF_SUPERVISED)}
    if recipe not in _OF_WORKFLOWS:
        of_reinforcement = {key for key in of_reinforcement if not key.startswith("agent/")}
    return {key for key in of_reinforcement if key not in _ONLY_WHERE or _ONLY_WHERE[key](config)}


def _has_critic(config: Config) -> bool:
    is_enabled = config["critic"]["enable"]
    return bool(config["algorithm"]["adv_estimator"] == "gae" if is_enabled is None else is_enabled)


def _has_trainer_log_probs(config: Config) -> bool:
    """Return whether the trainer computes log probabilities before its update, beside the engine's."""
    return not (config["algorithm"].get("rollout_correction") or {}).get("bypass_mode")


def _is_corrected(config: Config) -> bool:
    return bool((config["algorithm"].get("rollout_correction") or {}).get("rollout_is"))


#: What RL runs log in some configurations only, and whether one is such.
_ONLY_WHERE: dict[str, Callable[[Config], bool]] = {
    # verl's loss of this name has no ratio, and so no distance from the policy before the update.
    "actor/ppo_kl": lambda config: config["actor_rollout_ref"]["actor"]["policy_loss"]["loss_mode"] != "gpg",
    "actor/kl_loss": lambda config: bool(config["actor_rollout_ref"]["actor"]["use_kl_loss"]),
    "actor/reward_kl_penalty": lambda config: bool(config["algorithm"]["use_kl_in_reward"]),
    "critic/grad_norm": _has_critic,
    "critic/vf_loss": _has_critic,
    "rollout_corr/rollout_is_mean": _is_corrected,
    "training/rollout_actor_probs_pearson_corr": _has_trainer_log_probs,
    "training/rollout_probs_diff_mean": _has_trainer_log_probs,
    "training/uniform_group_fraction": lambda config: config["actor_rollout_ref"]["rollout"]["n"] > 1,
}
