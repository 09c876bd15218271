"""Workflows of persons, trained for real: in the sandbox, with failures among the sessions.

The workflow rewards answers that end in a 7, which the starter model gives now and then: what it learns is
nothing that it was taught. Each session speaks twice, the second time with its history edited.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trellis_testing.engine_runs import EngineRun, compose_job, run_engine
from trellis_testing.starter import Starter

pytestmark = [pytest.mark.training, pytest.mark.timeout(1800), pytest.mark.proves("tune")]

SHORT_STEPS, LONG_STEPS = 8, 40
PARAMS: dict[str, Any] = {
    "batch_size": 16,
    "group_size": 8,
    "mini_batch_size": 16,
    "max_response_length": 64,
    "reply_tokens": 8,
    "validate_before": False,
    "validate_every": 0,
    "validation_rows": 0,
    "save_every": 0,
    "session_timeout": 20.0,
    "step_timeout": 3.0,
    "runners": 8,
}
SEVENS = """
from typing import Dict
from trellis import TunableChatModel


async def workflow(task: Dict, model: TunableChatModel) -> float:
    reply = await model(task["messages"])
    return 1.0 if reply.text.strip().endswith("7") else 0.0
"""
#: Of two branches; fails for the questions that hold a 0: raises, reads a file, gives NaN, or hangs.
TROUBLED = """
import random
from trellis import JudgeOutput, TunableChatModel, WorkflowOutput


async def workflow(task: dict, model: TunableChatModel) -> WorkflowOutput:
    first = await model(task["messages"])
    if "0" in task["question"]:
        trouble = random.SystemRandom().randrange(80)
        if trouble == 0:
            while True:
                pass
        if trouble % 3 == 0:
            return WorkflowOutput(reward=float("nan"))
        if trouble % 3 == 1:
            open("/etc/shadow")
        raise RuntimeError("no zero, please")
    question = {"role": "user", "content": "Again: " + task["question"]}
    second = await model([question])
    return WorkflowOutput(response=[first.text, second.text], metrics={"length": len(second.text)})


async def judge(task: dict, response: list) -> JudgeOutput:
    return JudgeOutput(reward=sum(text.strip().endswith("7") for text in response) / 2)
"""


def train(folder: Path, starter: Starter, code: str, environment: dict[str, str], **params: Any) -> EngineRun:
    workflow = folder / "workflow.py"
    workflow.write_text(code)
    run = compose_job(
        folder,
        recipe="tune",
        model=starter.taught,
        rows=starter.rl_train,
        params={**PARAMS, **params},
        workflow=workflow,
    )
    return run_engine(run, environment=environment, timeout_s=1500)


@pytest.fixture(scope="module")
def troubled(starter: Starter, join_ray: Any, tmp_path_factory: pytest.TempPathFactory) -> EngineRun:
    folder = tmp_path_factory.mktemp("troubled")
    return train(folder, starter, TROUBLED, join_ray(), total_steps=SHORT_STEPS, learning_rate=3e-4)


def rollouts_of(run: EngineRun) -> list[dict[str, Any]]:
    return [each for event in run.events("rollouts") for each in event["rollouts"]]


def test_a_workflows_reward_rises_although_sessions_fail(troubled: EngineRun) -> None:
    # C8, and the beginning of C9
    rewards = troubled.curve("critic/score/mean")
    assert list(rewards) == list(range(1, SHORT_STEPS + 1))
    errors = list(troubled.curve("reward/errors").values())
    assert sum(errors) > 0
    assert np.mean([rewards[step] for step in (7, 8)]) > np.mean([rewards[step] for step in (1, 2)])


def test_every_way_to_fail_is_told_and_teaches_nothing(troubled: EngineRun) -> None:
    failed = [each for each in rollouts_of(troubled) if each["reward_parts"]["workflow_error"] == 1.0]
    assert failed
    assert {each["advantage"] for each in failed} == {None}
    assert all("0" in each["prompt"] for each in failed)
    notes = [
        json.loads(line)["message"]
        for line in (troubled.folder / "reward-errors.jsonl").read_text().splitlines()
    ]
    for problem in (
        "RuntimeError: no zero, please (workflow.py, line ",
        "PermissionError|FileNotFoundError",
        "nan",
    ):
        assert any(word in note for note in notes for word in problem.split("|")), (problem, notes)


def test_an_edited_history_gives_two_samples_with_the_sessions_advantage(troubled: EngineRun) -> None:
    # C4, C6
    answered = [each for each in rollouts_of(troubled) if each["reward_parts"]["workflow_error"] == 0.0]
    assert answered
    assert {each["reward_parts"]["branches"] for each in answered} == {2.0}
    told = [each["trajectory"]["turns"] for each in answered if each["trajectory"] is not None]
    assert told
    assert all(turns[0]["text"].startswith("Again:") for turns in told)
    by_group: dict[tuple[int, str], list[dict[str, Any]]] = {}
    for event in troubled.events("rollouts"):
        for each in event["rollouts"]:
            by_group.setdefault((event["step"], each["group"]), []).append(each)
    for group in by_group.values():
        sound = [each for each in group if each["reward_parts"]["workflow_error"] == 0.0]
        scores = np.array([each["score"] for each in sound])
        if len(scores) < 2:
            continue
        expected = (scores - scores.mean()) / (scores.std(ddof=1) + 1e-6)
        np.testing.assert_allclose([each["advantage"] for each in sound], expected, atol=1e-3)


def test_the_trainer_recomputes_the_samplers_log_probabilities(troubled: EngineRun) -> None:
    # C5
    assert set(troubled.curve("training/rollout_probs_diff_max")) == set(range(1, SHORT_STEPS + 1))
    assert max(troubled.curve("training/rollout_probs_diff_max").values()) < 1e-2


def test_numbers_of_the_workflow_are_metrics(troubled: EngineRun) -> None:
    assert min(troubled.curve("agent/workflow/length/mean").values()) > 0
    assert max(troubled.curve("agent/branches/mean").values()) <= 2


def test_a_toy_workflow_is_learned_within_forty_steps(
    starter: Starter, join_ray: Any, tmp_path: Path
) -> None:
    # C9
    run = train(tmp_path, starter, SEVENS, join_ray(), total_steps=LONG_STEPS, learning_rate=2e-4)
    rewards = run.curve("critic/score/mean")
    assert np.mean([rewards[step] for step in (1, 2, 3)]) < 0.2
    assert max(rewards.values()) > 0.8
