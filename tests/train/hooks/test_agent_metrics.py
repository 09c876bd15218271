"""What is measured of an agent's episodes, under the names of its task."""

from types import SimpleNamespace
from typing import Any

import pytest
from trellis_train.hooks.agent_metrics import average, collect_agent_metrics, derive_agent_metrics


def episode(turns: int, acc: float, **more: Any) -> dict[str, Any]:
    return {"agent": {"turns": turns}, "reward_extra_info": {"acc": acc, "answer_score": acc / 2}, **more}


def test_the_numbers_of_episodes_are_averaged() -> None:
    found = average([episode(2, 1.0), episode(4, 0.0)])

    assert found == {"agent/turns/mean": 3.0, "train/accuracy": 0.5, "train/avg_score": 0.25}


def test_a_run_without_episodes_reports_none() -> None:
    assert average([{"reward_extra_info": {"acc": 1.0}}, None]) == {}


def test_of_an_episode_with_several_outputs_the_last_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    import transfer_queue

    rows = {"a_0_0": episode(9, 0.0), "a_0_1": episode(1, 1.0), "a_1_0": episode(3, 1.0), "pad": None}

    def kv_batch_get(*, keys: list[str], **_: Any) -> dict[str, Any]:
        return {"extra_fields": [rows[key] for key in keys]}

    monkeypatch.setattr(transfer_queue, "kv_batch_get", kv_batch_get)
    tags = [{}, {}, {}, {"is_padding": True}]

    found = collect_agent_metrics(SimpleNamespace(keys=list(rows), tags=tags, partition_id="train"))

    assert found["agent/turns/mean"] == 2.0


def test_validation_is_told_under_the_names_of_the_task_and_as_baseline_before_the_first_step() -> None:
    values = {
        "val-core/linksearch/acc/mean@1": 0.25,
        "val-aux/linksearch/answer_score/mean@1": 0.5,
        "val-aux/linksearch/hits/mean@1": 2.0,
        "val-aux/linksearch/strategy/mean@1": 0.1,
        "val-aux/linksearch/reward/mean@1": -0.5,
        "val-aux/linksearch/turns/mean@1": 3.0,
        "val-aux/linksearch/tokens/mean@1": 900.0,
        "val-aux/linksearch/found/mean@1": 0.5,
        "val-aux/linksearch/found_turn/mean@1": 1.0,
        "val-aux/num_turns/mean": 7.0,
    }

    later, before = derive_agent_metrics(values, 10), derive_agent_metrics(values, 0)

    assert later == {
        "eval/accuracy": 0.25,
        "eval/avg_score": 0.5,
        "eval/avg_hits": 2.0,
        "eval/avg_strategy": 0.1,
        "eval/avg_reward": -0.5,
        "eval/avg_turns": 3.0,
        "eval/avg_tokens": 900.0,
        "eval/first_hit_turn": 2.0,
    }
    assert before == {**later, **{name.replace("eval", "baseline"): value for name, value in later.items()}}


def test_the_name_of_a_data_source_may_have_several_parts() -> None:
    values = {"val-core/toolbox/planning/acc/mean@1": 0.25, "val-core/toolbox/selection/acc/mean@1": 0.75}

    assert derive_agent_metrics(values, 10) == {"eval/accuracy": 0.5}


def test_where_nobody_was_found_there_is_no_turn_of_the_first_hit() -> None:
    values = {"val-aux/linksearch/found/mean@1": 0.0, "val-aux/linksearch/found_turn/mean@1": 0.0}

    assert derive_agent_metrics(values, 10) == {}


def test_losses_and_rewards_of_a_step_have_the_names_of_the_task() -> None:
    values = {"actor/loss": 0.5, "actor/pg_loss": 0.25, "critic/score/mean": 1.5}

    assert derive_agent_metrics(values, 3) == {
        "train/loss": 0.5,
        "train/policy_loss": 0.25,
        "train/avg_reward": 1.5,
    }
