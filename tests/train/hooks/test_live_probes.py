"""Probes made of a policy's own responses, scored by the run's rewards beside it."""

import json
import time
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.dry_run import Probe
from trellis_train.hooks import live_probes
from trellis_train.hooks.event_spool import Spool
from trellis_train.hooks.live_probes import LiveProbes
from trellis_train.rewards.probes import LiveResponse, make_live_probes

REWARDS: list[dict[str, Any]] = [{"name": "contains"}, {"name": "format", "weight": 0.5}]
FORMATTED = "<think>1 + 1</think>2"


def live(question: str, response: str, answer: str, **more: Any) -> LiveResponse:
    return LiveResponse([{"role": "user", "content": question}], response, answer, **more)


def read_events(folder: Path, kind: str) -> list[dict[str, Any]]:
    lines = (folder / "events" / "probes.1.jsonl").read_text().splitlines()
    return [event for event in map(json.loads, lines) if event["kind"] == kind]


def probe(folder: Path, rewards: list[dict[str, Any]], *responses: LiveResponse) -> dict[str, float]:
    """The metrics of the probes made of these responses."""
    probes = LiveProbes.of_rewards(rewards, Spool(folder, "probes"))
    assert probes is not None
    assert probes.is_due(10)
    assert probes.start(10, responses)
    probes.wait()
    (event,) = read_events(folder, "metrics")
    assert event["step"] == 10
    assert event["values"].pop("perf/probes_s") > 0
    return {name.split("/")[1]: value for name, value in event["values"].items()}


def test_probes_are_scored_by_the_rewards_of_the_run(tmp_path: Path) -> None:
    earned = probe(tmp_path, REWARDS, live("a?", "It is 1", "1"), live("b?", "It is 2", "2"))

    assert earned == {
        "rollouts": 1.0, "empty": 0.0, "truncated": 0.0, "repeated": 1.0, "format_only": 0.0, "wrong": 0.0
    }  # fmt: skip
    assert not read_events(tmp_path, "log")


def test_of_each_trick_the_text_that_earned_most_is_shown_before_its_metrics(tmp_path: Path) -> None:
    probe(tmp_path, REWARDS, live("a?", "x" * 20_000, "1"), live("b?", FORMATTED, "2"))

    lines = (tmp_path / "events" / "probes.1.jsonl").read_text().splitlines()
    assert [json.loads(line)["kind"] for line in lines] == ["rollouts", "metrics"]
    (event,) = read_events(tmp_path, "rollouts")
    shown = {each["group"]: each for each in event["rollouts"]}
    assert event["split"] == "probe"
    assert (shown["wrong"]["response"], shown["wrong"]["score"]) == (FORMATTED, 0.5)
    assert shown["wrong"]["messages"] == [{"role": "user", "content": "a?"}]
    assert shown["wrong"]["reward_parts"] == {"contains": 0.0, "format": 1.0}
    assert (shown["empty"]["response"], shown["empty"]["response_tokens"]) == ("", 0)
    assert shown["format_only"]["response_tokens"] == 13
    assert len(lines[0]) < 100_000


def test_tricks_are_scored_with_the_rows_of_their_prompts_and_their_length_in_tokens(tmp_path: Path) -> None:
    penalty = {"name": "length", "weight": 1.0, "options": {"free_length": 10, "unit": "tokens"}}

    earned = probe(tmp_path, [{"name": "contains"}, penalty], live("a?", "It is 1", "1", tokens=10))

    assert (earned["rollouts"], earned["repeated"]) == (1.0, 0.0)


def test_a_reward_that_ignores_the_prompt_pays_the_response_to_another_one() -> None:
    responses = [live("a?", "same", "1"), live("b?", "other", "2")]

    probes = make_live_probes(responses)

    assert [(each.response, each.answer) for each in probes[Probe.WRONG]] == [("other", "1"), ("same", "2")]
    assert Probe.WRONG not in make_live_probes([responses[0], responses[0]])


@pytest.mark.parametrize("step", [0, 1, 9, 11])
def test_most_steps_are_not_probed(tmp_path: Path, step: int) -> None:
    probes = LiveProbes.of_rewards(REWARDS, Spool(tmp_path, "probes"))
    assert probes is not None

    assert not probes.is_due(step)
    assert not probes.start(10, [])


def test_probes_take_a_hundredth_of_the_time_at_most(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    monkeypatch.setattr(live_probes.time, "perf_counter", lambda: clock[0])
    probes = LiveProbes.of_rewards(REWARDS, Spool(tmp_path, "probes"))
    assert probes is not None
    score = live_probes.score_probes

    async def score_slowly(*arguments: Any) -> Any:
        clock[0] += 2.0
        return await score(*arguments)

    monkeypatch.setattr(live_probes, "score_probes", score_slowly)
    assert probes.start(10, [live("a?", "It is 1", "1")])
    probes.wait()

    due = {}
    for clock[0] in (110.0, 299.0, 301.0):
        due[clock[0]] = probes.is_due(20)
    assert due == {110.0: False, 299.0: False, 301.0: True}


@pytest.mark.parametrize("name", ["judge", "code"])
def test_a_slow_reward_counts_for_tricks_at_its_lowest_and_as_in_the_run_otherwise(
    tmp_path: Path, name: str
) -> None:
    """What a trick would get for certain is held against what the policy got."""
    rewards = [{"name": name}, {"name": "format", "weight": 0.5}]

    earned = probe(tmp_path, rewards, live("a?", FORMATTED, "2", earned={name: 0.75, "format": 1.0}))

    assert (earned["rollouts"], earned["repeated"], earned["empty"]) == (1.25, 0.0, 0.0)
    (line,) = read_events(tmp_path, "log")[0]["lines"]
    assert line.startswith(f"Reward probes: tricks are scored without {name};")


def test_a_slow_penalty_counts_in_full(tmp_path: Path) -> None:
    rewards = [{"name": "format"}, {"name": "judge", "weight": -0.5}]

    earned = probe(tmp_path, rewards, live("a?", FORMATTED, "2", earned={"judge": 0.5}))

    assert (earned["rollouts"], earned["empty"]) == (0.75, -0.5)


def test_responses_of_which_a_slow_reward_is_not_known_are_left_out(tmp_path: Path) -> None:
    probes = LiveProbes.of_rewards([{"name": "format"}, {"name": "code"}], Spool(tmp_path, "probes"))
    assert probes is not None

    assert not probes.start(10, [live("a?", FORMATTED, "2")])


@pytest.mark.parametrize(
    ("rewards", "why"),
    [
        ([], "an agent computes its own reward"),
        ([{"name": "code"}], "can pay nothing by themselves"),
        ([{"name": "code"}, {"name": "repetition", "weight": 0.2}], "can pay nothing by themselves"),
        ([{"name": "exact", "weight": 0.0}, {"name": "judge"}], "can pay nothing by themselves"),
        ([{"name": "exact"}, {"name": "python"}], "what python would give at least"),
        ([{"name": "exact"}, {"name": "reward_model"}], "what reward_model would give at least"),
    ],
)
def test_where_nothing_can_be_told_the_log_says_why(
    tmp_path: Path, rewards: list[dict[str, Any]], why: str
) -> None:
    assert LiveProbes.of_rewards(rewards, Spool(tmp_path, "probes")) is None

    (event,) = read_events(tmp_path, "log")
    assert event["stream"] == "platform"
    assert event["lines"][0].startswith("Reward probes: tricks are not scored in this run, because ")
    assert why in event["lines"][0]


def test_scoring_probes_of_usual_rewards_takes_little(tmp_path: Path) -> None:
    """Eight prompts, as a step has: the whole is far from what a step takes."""
    rewards = [{"name": "exact"}, {"name": "format", "weight": 0.2}, {"name": "repetition", "weight": 0.2}]
    responses = [live(f"{n}?", f"<think>{'so it goes ' * 500}</think>{n}", f"{n}") for n in range(8)]
    began = time.perf_counter()

    probe(tmp_path, rewards, *responses)

    assert time.perf_counter() - began < 5.0
