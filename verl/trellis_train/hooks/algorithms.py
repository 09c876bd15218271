"""What single algorithms need that verl's trainers do not do."""

from typing import Any

from trellis_recipes.mapping import REWARD_ALONE

from trellis_train.hooks import gpg, reward_alone
from trellis_train.hooks.dynamic_sampling import BoundedSampling
from trellis_train.hooks.remax import GreedyBaseline


def mixins_for(config: Any) -> tuple[type[Any], ...]:
    """Return the classes to mix in before verl's trainer for the algorithm of this configuration."""
    mixins: list[type[Any]] = []
    if config.algorithm.adv_estimator == "remax":
        mixins.append(GreedyBaseline)
    if config.algorithm.filter_groups.enable:
        mixins.append(BoundedSampling)
    return tuple(mixins)


def correct_estimators(config: Any) -> None:
    """Register the recipe's own algorithm, and estimators that follow their paper, in this process."""
    from verl.trainer.ppo import core_algos
    from verl.utils.import_utils import import_external_libs

    import_external_libs(config.actor_rollout_ref.model.external_lib)
    if config.algorithm.adv_estimator == "gpg":
        core_algos.ADV_ESTIMATOR_REGISTRY["gpg"] = gpg.estimate_advantages
    if config.algorithm.adv_estimator == REWARD_ALONE:
        core_algos.register_adv_est(REWARD_ALONE)(reward_alone.estimate_advantages)
