"""Word problems, their calculator, and the example that solves them with it."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from trellis_testing.episodes import ScriptedServer, loop_arguments, make_tool_tokenizer
from trellis_train.agents import environments
from trellis_train.agents.environments import BadRequest
from trellis_train.agents.episode.tool_calls import render_tool_call
from trellis_train.agents.maths.calculator import BadExpression, calculate
from trellis_train.agents.maths.problems import make_problems
from trellis_train.agents.tune.loop import TuneLoop

EXAMPLE = Path(__file__).parents[3] / "sdk" / "examples" / "react_maths"


@pytest.mark.parametrize(
    ("expression", "value"),
    [("1+2*3", "7"), ("(3 + 4) / 2", "3.5"), ("-2**2", "-4"), ("7 // 2 + 7 % 4", "6")],
)
def test_arithmetic_is_calculated(expression: str, value: str) -> None:
    assert calculate(expression) == value


@pytest.mark.parametrize(
    "expression",
    [
        "__import__('os')",
        "a",
        "'x' * 9",
        "9**9**9",
        "10**31",
        "1/0",
        "2 +",
        "(" * 150,
        "1" * 201,
        "(-8)**0.5",
    ],
)
def test_anything_else_is_refused(expression: str) -> None:
    with pytest.raises(BadExpression):
        calculate(expression)


def test_problems_repeat_by_seed_and_no_split_shares_one() -> None:
    train = make_problems(300, seed=1, split="train")
    assert train == make_problems(300, seed=1, split="train")
    assert train != make_problems(300, seed=2, split="train")
    evaluation = make_problems(300, seed=1, split="eval")
    assert not {each.question for each in train} & {each.question for each in evaluation}
    for problem in train:
        working, _, result = problem.answer.rpartition("\n#### ")
        steps = [step.split(" = ") for step in working.split(", ")]
        assert all(calculate(expression) == value for expression, value in steps)
        assert steps[-1][1] == result == problem.result


def test_the_environment_is_made_and_its_tools_answer(tmp_path: Path) -> None:
    manifest = environments.make("maths", tmp_path, {"train": 5, "eval": 3})
    assert manifest.counts == {"train_problems": 5, "eval_problems": 3}
    rows = [json.loads(line) for line in (tmp_path / manifest.datasets["train"]).read_text().splitlines()]
    assert [row["extra_info"]["index"] for row in rows] == [0, 1, 2, 3, 4]
    assert environments.call(tmp_path, "calculate", {"expression": "6*7"}).result == "42"
    assert environments.call(tmp_path, "calculate", {"expression": "x"}).error == "BAD_EXPRESSION"
    assert environments.call(tmp_path, "finish", {"answer": "42"}).ends_episode
    with pytest.raises(BadRequest):
        environments.call(tmp_path, "calculate", {})


def solve(script: list[str], answer: str = "12 - 4 = 8\n#### 8", **row: Any) -> Any:
    """The example's session as verl plays it."""

    async def play() -> Any:
        tokenizer = make_tool_tokenizer()
        loop = TuneLoop(
            **loop_arguments(ScriptedServer(tokenizer, script), tokenizer),
            workflow_path=str(EXAMPLE / "workflow.py"),
            options={"runners": 1},
        )
        try:
            return await loop.run(
                {"temperature": 1.0},
                raw_prompt=[{"role": "user", "content": "Twelve less four?"}],
                reward_model={"ground_truth": answer},
                **row,
            )
        finally:
            loop.close()

    return asyncio.run(play())


CALCULATE = render_tool_call("calculate", {"expression": "12 - 4"})


@pytest.mark.parametrize(
    ("script", "reward", "calls"),
    [
        ([f"I calculate. {CALCULATE}", render_tool_call("finish", {"answer": "8"})], 1.1, 2),
        ([CALCULATE, "It is \\boxed{8}."], 1.1, 1),
        ([render_tool_call("finish", {"answer": "9"})], 0.1, 1),
        (["I do not know."], 0.0, 0),
        ([CALCULATE] * 4, 0.0, 4),
    ],
)
def test_the_example_acts_until_it_has_an_answer(script: list[str], reward: float, calls: int) -> None:
    # C9
    (output,) = solve(script)
    assert output.reward_score == pytest.approx(reward)
    assert output.extra_fields["agent"]["workflow/calls"] == calls
    assert output.extra_fields["agent"]["turns"] == len(script)


def test_what_the_tool_answered_is_shown_and_not_learned() -> None:
    (output,) = solve([CALCULATE, render_tool_call("finish", {"answer": "8"})])
    turns = output.extra_fields["trajectory"]["turns"]
    assert [turn["role"] for turn in turns] == ["system", "user", "assistant", "tool", "assistant"]
    assert [turn["is_trained"] for turn in turns] == [False, False, True, False, True]
    assert turns[3]["text"] == "8"
    assert turns[2]["calls"][0]["arguments"] == {"expression": "12 - 4"}
