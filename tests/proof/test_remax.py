"""ReMax, run for real: what a response is held against is the reward of the greedy response to its prompt."""

import statistics
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from trellis_testing.engine_runs import EngineRun
from trellis_testing.starter import Starter

from .reinforcement import STEPS, ReinforcementRuns, question_of, run_of, scores_by_prompt

pytestmark = [
    pytest.mark.proves("remax"),
    pytest.mark.training,
    pytest.mark.timeout(1800),
]


@pytest.fixture(scope="module")
def run(reinforcement: ReinforcementRuns) -> EngineRun:
    return run_of(reinforcement, "remax")


def groups_of_first_step(run: EngineRun) -> list[list[dict[str, Any]]]:
    """The sampled responses of the first step that the platform shows, by prompt."""
    groups: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in run.events("rollouts"):
        if event["split"] == "train" and event["step"] == 1:
            for rollout in event["rollouts"]:
                groups[rollout["group"]].append(rollout)
    return list(groups.values())


def test_the_advantage_is_the_reward_less_that_of_the_greedy_response(
    run: EngineRun, starter: Starter
) -> None:
    """Greedy responses are decoded here anew, from the weights that the run started with."""
    groups = groups_of_first_step(run)

    greedy = answer_greedily(starter.taught, [group[0]["prompt"] for group in groups])

    baselines = [
        float(answer == group[0]["ground_truth"]) for answer, group in zip(greedy, groups, strict=True)
    ]
    # Else the test would not tell one prompt's baseline from another's.
    assert len(set(baselines)) == 2
    for baseline, group in zip(baselines, groups, strict=True):
        for rollout in group:
            assert rollout["advantage"] == pytest.approx(rollout["score"] - baseline, abs=1e-3)


def test_the_greedy_responses_are_not_trained_on(run: EngineRun) -> None:
    for step in range(1, STEPS + 1):
        groups = scores_by_prompt(run, step).values()
        assert [len(group) for group in groups] == [run.spec.params["group_size"]] * len(groups)
    # They are better than the sampled ones, and get better with them.
    baseline, score = run.curve("critic/reward_baseline/mean"), run.curve("critic/score/mean")
    assert statistics.fmean(baseline.values()) > statistics.fmean(score.values())


def answer_greedily(model_folder: Path, prompts: list[str]) -> list[str]:
    """The likeliest response to each prompt, which is given as the chat template wrote it, less its marks."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model_folder)
    model = AutoModelForCausalLM.from_pretrained(model_folder, dtype=torch.float32)
    answers = []
    for prompt in prompts:
        text = tokenizer.apply_chat_template(
            [{"role": "user", "content": question_of(prompt)}], tokenize=False, add_generation_prompt=True
        )
        tokens = tokenizer(text, return_tensors="pt")
        with torch.no_grad():
            output = model.generate(**tokens, do_sample=False, max_new_tokens=16)
        answers.append(tokenizer.decode(output[0, tokens["input_ids"].shape[1] :], skip_special_tokens=True))
    return answers
