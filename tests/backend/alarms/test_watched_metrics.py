"""The names that the rules watch are all demanded of runs: renamed by an engine, none falls silent."""

from typing import Any

import pytest
from trellis_api.jobs.alarms.rules import RULES, find_rules
from trellis_recipes.compose import ComposeRequest, compose
from trellis_testing.watched_metrics import WATCHED, watched_metrics

#: Runs of the proofs, and what they choose.
PROVEN: list[tuple[str, dict[str, Any]]] = [
    ("ppo", {}),
    ("grpo", {"use_kl_loss": True}),
    ("grpo", {"importance_correction": "token"}),
    ("reinforce_plus_plus", {}),
    ("sft", {}),
    ("kto", {}),
    ("tune", {"workflow": "wfl_1"}),
]


def demanded(recipe: str, **params: Any) -> set[str]:
    composition = compose(
        ComposeRequest(
            recipe=recipe,
            preset="cpu-tiny",
            params=params,
            platform="cpu",
            gpus=1,
            model_path="/data/model",
            train_path="/data/train.parquet",
            checkpoint_dir="/data/checkpoints",
            seed=0,
        )
    )
    assert composition.errors == []
    return watched_metrics(composition.engine, recipe, composition.config)


def test_every_watched_metric_is_demanded_of_a_proven_run() -> None:
    found = set().union(*(demanded(recipe, **params) for recipe, params in PROVEN))

    assert found == WATCHED


def test_a_run_is_asked_only_for_what_it_measures() -> None:
    plain, of_sampler = demanded("grpo"), demanded("grpo", old_log_probs="sampler")

    assert {"actor/ppo_kl", "critic/score/min", "training/rollout_probs_diff_mean"} <= plain
    assert not {"actor/kl_loss", "actor/reward_kl_penalty", "critic/vf_loss"} & plain
    assert "training/rollout_probs_diff_mean" not in of_sampler
    assert "actor/ppo_kl" not in demanded("gpg")
    assert demanded("dpo") == demanded("kto") - {"kl"} == {"loss", "grad_norm", "eval_loss"}
    assert demanded("sft") == {"train/loss", "train/grad_norm", "val/loss"}


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_follows_the_metrics_that_it_names(rule: Any) -> None:
    position = RULES.index(rule)

    for key in rule.keys:
        assert (position, rule.track or key) in find_rules(key)
