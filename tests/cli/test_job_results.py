"""`trellis jobs rollouts`, `timing`, `show`: what a run wrote, where its time goes, what alarms are about."""

import json
import math
from collections.abc import Iterator
from typing import Any

import pytest
from trellis_cli.job_rollouts import read_ends
from trellis_cli.job_timing import describe_limit
from trellis_testing.commands import trellis
from trellis_tools.bench.api import Reporter
from trellis_tools.bench.light_platform import LightPlatform

TIME = "2026-01-02T03:04:05Z"


@pytest.fixture
def reporter(platform: LightPlatform) -> Reporter:
    """A run that reports."""
    return Reporter(platform)


def sampled(step: int, *scores: float, **more: Any) -> dict[str, Any]:
    rollouts = [
        {
            "group": f"g{place % 2}",
            "prompt": f"What is [{place}]?",
            "response": f"It is {score}",
            "score": score,
            "response_tokens": 4,
            "reward_parts": {"exact": score},
        }
        for place, score in enumerate(scores)
    ]
    return {"kind": "rollouts", "time": TIME, "step": step, "rollouts": rollouts, **more}


def measured(step: int, **values: float) -> dict[str, Any]:
    return {"kind": "metrics", "time": TIME, "step": step, "values": values}


def test_the_best_and_worst_responses_of_a_step_are_shown(
    platform: LightPlatform, reporter: Reporter
) -> None:
    reporter.send(reporter.pack([sampled(3, 1.0), sampled(4, 0.5, 0.9, 0.1, 0.7, 0.3)]))

    newest = trellis(platform, "jobs", "rollouts", reporter.job, "-n", "2")
    third = json.loads(trellis(platform, "jobs", "rollouts", reporter.job, "--step", "3", "--json").stdout)
    found = json.loads(trellis(platform, "jobs", "rollouts", reporter.job, "-n", "2", "--json").stdout)

    assert "step 4, train: 4 of 5 responses" in newest.stdout
    assert "best: reward 0.9, exact 0.9, 4 tokens" in newest.stdout
    assert (
        newest.stdout.index("It is 0.7") < newest.stdout.index("It is 0.1") < newest.stdout.index("It is 0.3")
    )
    assert "It is 0.5" not in newest.stdout
    assert "What is [1]?" in newest.stdout
    assert [each["score"] for each in found["best"] + found["worst"]] == [0.9, 0.7, 0.1, 0.3]
    assert (third["step"], third["total"], len(third["best"]), third["worst"]) == (3, 1, 1, [])


def test_a_run_without_responses_says_so(platform: LightPlatform, reporter: Reporter) -> None:
    done = trellis(platform, "jobs", "rollouts", reporter.job, "--step", "7", "--split", "validation")
    wrong = trellis(platform, "jobs", "rollouts", reporter.job, "--split", "test")

    assert (done.returncode, done.stdout) == (0, "no responses at step 7\n")
    assert wrong.returncode == 2


def test_responses_without_a_score_are_neither_best_nor_worst(
    platform: LightPlatform, reporter: Reporter
) -> None:
    reporter.send(reporter.pack([sampled(5, math.nan, math.nan)]))

    done = trellis(platform, "jobs", "rollouts", reporter.job, "--step", "5")

    assert (done.returncode, done.stdout) == (0, "no response at step 5 has a score\n")


@pytest.mark.parametrize(
    "scores", [[1.0] * 300, [0.0, 1.0] * 150, [float(each) for each in range(300)], [2.0]]
)
@pytest.mark.parametrize("count", [1, 3, 100])
def test_only_responses_that_are_shown_are_read(scores: list[float], count: int) -> None:
    read = 0

    def read_page(min_score: float, max_score: float) -> Iterator[dict[str, Any]]:
        nonlocal read
        for number, score in enumerate(scores):
            if min_score <= score <= max_score:
                read += 1
                yield {"id": number, "score": score}

    best, worst = read_ends(read_page, scores, count)

    ranked = sorted(scores)
    assert [each["score"] for each in best] == ranked[::-1][:count]
    assert [each["score"] for each in worst] == ranked[:-count][:count]
    assert len({each["id"] for each in best + worst}) == len(best) + len(worst)
    assert read <= 3 * count + 2


def test_the_phases_of_a_step_and_what_limits_the_run_are_shown(
    platform: LightPlatform, reporter: Reporter
) -> None:
    before = trellis(platform, "jobs", "timing", reporter.job)
    times = {"timing_s/step": 10.0, "timing_s/gen": 7.0, "timing_s/update_actor": 3.0}
    reporter.send(reporter.pack([measured(step, **times) for step in (1, 2)]))

    done = trellis(platform, "jobs", "timing", reporter.job)
    as_json = json.loads(trellis(platform, "jobs", "timing", reporter.job, "--json").stdout)

    assert before.stdout == "no step was measured\n"
    said = "Generation takes 70% of the time: 7 s per step on average, over 2 measured steps."
    assert said in done.stdout
    (row,) = [line.split() for line in done.stdout.splitlines() if line.startswith("update_actor")]
    assert row == ["update_actor", "Update", "3", "s", "30%"]
    assert as_json["bottleneck"]["group"] == "generation"


def test_what_limits_a_run_comes_with_its_figures() -> None:
    unknown = dict.fromkeys(
        ("longest_response", "tail_share", "queued_share", "kv_cache_use", "workers_busy", "engines_busy")
    )
    limit = {"group": "generation", "share": 0.5, "seconds": 2.0, "steps": 1, **unknown}
    figures = {"longest_response": 3.0, "tail_share": 0.4, "queued_share": 0.2, "kv_cache_use": 0.9}

    whole = describe_limit({**limit, **figures, "workers_busy": 0.3, "engines_busy": 0.6})

    assert describe_limit(limit).endswith("over 1 measured step.")
    assert "The longest response takes 3x as long as the median." in whole
    assert "The last tenth of the responses takes 40% of generation." in whole
    assert "queue 20% of its time, and its KV cache is up to 90% full." in whole
    assert "at work 30% of the time, the rollout engines 60%" in whole
    assert "median" not in describe_limit({**limit, **figures, "group": "log_probs"})


def test_an_alarm_is_shown_with_its_example(platform: LightPlatform, reporter: Reporter) -> None:
    trick = {"group": "empty", "prompt": "q", "response": "", "score": 0.8, "response_tokens": 0}
    for step in (10, 20):
        values = {"probe/rollouts/mean": 0.9, "probe/empty/mean": 0.8}
        probes = sampled(step, split="probe") | {"rollouts": [trick]}
        reporter.send(reporter.pack([probes, measured(step, **values)]))

    done = trellis(platform, "jobs", "show", reporter.job)

    assert "[probe_earns], step" in done.stdout
    assert "example, step 20: probe empty, reward 0.8, 0 tokens" in done.stdout
    assert "(empty response)" in done.stdout
