"""Probes made of a policy's own responses, scored by the run's rewards beside it."""

import json
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.dry_run import Probe
from trellis_contracts.events import Rollout, RolloutsEvent
from trellis_train.hooks.clock import now
from trellis_train.hooks.event_spool import Spool
from trellis_train.hooks.live_probes import LiveProbes
from trellis_train.hooks.rollouts import clip_text
from trellis_train.rewards.probes import LiveResponse, make_live_probes

REWARDS: list[dict[str, Any]] = [{"name": "contains"}, {"name": "format", "weight": 0.5}]


def rollout(group: str, response: str, answer: str, score: float = 1.0) -> Rollout:
    return Rollout(
        group=group,
        prompt=f"{group}?",
        response=response,
        ground_truth=answer,
        score=score,
        response_tokens=3,
    )


def sample(step: int, *rollouts: Rollout) -> RolloutsEvent:
    return RolloutsEvent(time=now(), step=step, rollouts=list(rollouts))


def read_values(folder: Path) -> list[tuple[int, dict[str, float]]]:
    lines = (folder / "events" / "probes.1.jsonl").read_text().splitlines()
    return [(event["step"], event["values"]) for event in map(json.loads, lines)]


def test_probes_are_scored_by_the_rewards_of_the_run(tmp_path: Path) -> None:
    probes = LiveProbes.of_rewards(REWARDS, Spool(tmp_path, "probes"))
    assert probes is not None
    best, other = rollout("a", "It is 1", "1"), rollout("b", "It is 2", "2")

    assert probes.start(sample(10, best, rollout("a", "It is 9", "1", score=0.0), other))
    probes.wait()

    assert read_values(tmp_path) == [
        (
            10,
            {
                "probe/rollouts/mean": 1.0,
                "probe/empty/mean": 0.0,
                "probe/truncated/mean": 0.0,
                "probe/repeated/mean": 1.0,
                "probe/format_only/mean": 0.0,
                "probe/wrong/mean": 0.0,
            },
        )
    ]


def test_a_reward_that_ignores_the_prompt_pays_the_response_to_another_one() -> None:
    responses = [LiveResponse("a?", "same", "1"), LiveResponse("b?", "other", "2")]

    probes = make_live_probes(responses)

    assert [(each.response, each.answer) for each in probes[Probe.WRONG]] == [("other", "1"), ("same", "2")]
    assert Probe.WRONG not in make_live_probes([responses[0], responses[0]])


@pytest.mark.parametrize("step", [0, 1, 9, 11])
def test_most_steps_are_not_probed(tmp_path: Path, step: int) -> None:
    probes = LiveProbes.of_rewards(REWARDS, Spool(tmp_path, "probes"))
    assert probes is not None

    assert not probes.start(sample(step, rollout("a", "1", "1")))


def test_responses_that_were_cut_are_not_scored_as_if_they_were_whole(tmp_path: Path) -> None:
    probes = LiveProbes.of_rewards(REWARDS, Spool(tmp_path, "probes"))
    assert probes is not None

    assert not probes.start(sample(10, rollout("a", clip_text("x" * 1000, 500), "1")))


@pytest.mark.parametrize("name", ["judge", "reward_model", "code", "python"])
def test_rewards_that_cost_time_or_money_are_not_asked_again(tmp_path: Path, name: str) -> None:
    assert LiveProbes.of_rewards([{"name": "exact"}, {"name": name}], Spool(tmp_path, "probes")) is None


def test_rewards_of_an_agent_are_not_probed(tmp_path: Path) -> None:
    assert LiveProbes.of_rewards([], Spool(tmp_path, "probes")) is None
