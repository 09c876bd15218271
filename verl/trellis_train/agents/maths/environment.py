"""The environment ``maths``: problems as rows, and its tools."""

import json
from pathlib import Path
from typing import Any

from trellis_contracts.agents import ToolSchema

from trellis_train.agents.environments import Answer, BadRequest, Made
from trellis_train.agents.maths.calculator import BadExpression, calculate
from trellis_train.agents.maths.problems import Problem, make_problems

SPLITS = ("train", "eval")
ROWS_FOLDER = "rows"
TOOLS = [
    ToolSchema(
        name="calculate",
        description="Calculates an arithmetic expression.",
        parameters={
            "type": "object",
            "properties": {"expression": {"type": "string", "description": "Such as (3 + 4) * 2."}},
            "required": ["expression"],
        },
    ),
    ToolSchema(
        name="finish",
        description="Gives the answer and ends the episode.",
        parameters={
            "type": "object",
            "properties": {"answer": {"type": "string", "description": "The number."}},
            "required": ["answer"],
        },
        ends_episode=True,
    ),
]


def make(folder: Path, parameters: dict[str, Any]) -> Made:
    """Write the problems as questions with answers, and as verl's rows."""
    (folder / ROWS_FOLDER).mkdir(parents=True, exist_ok=True)
    for split in SPLITS:
        problems = make_problems(parameters[split], seed=parameters["seed"], split=split)
        lines = [{"question": problem.question, "answer": problem.answer} for problem in problems]
        _write(folder / f"{split}.jsonl", lines)
        rows = [_row(problem, index, split) for index, problem in enumerate(problems)]
        _write(folder / ROWS_FOLDER / f"{split}.jsonl", rows)
    return Made(
        counts={f"{split}_problems": parameters[split] for split in SPLITS},
        tools=TOOLS,
        datasets={split: f"{ROWS_FOLDER}/{split}.jsonl" for split in SPLITS},
    )


def call(folder: Path, tool: ToolSchema, arguments: dict[str, Any]) -> Answer:  # noqa: ARG001 - the tools keep nothing
    """Call a tool as an episode would."""
    if tool.name == "finish":
        return Answer(str(arguments.get("answer", "")))
    expression = arguments.get("expression")
    if not isinstance(expression, str):
        raise BadRequest("calculate needs an expression (a string)")
    try:
        return Answer(calculate(expression))
    except BadExpression as error:
        return Answer(str(error), error="BAD_EXPRESSION")


def _row(problem: Problem, index: int, split: str) -> dict[str, Any]:
    return {
        "data_source": "maths",
        "prompt": [{"role": "user", "content": problem.question}],
        "ability": "maths",
        "reward_model": {"style": "rule", "ground_truth": problem.result},
        "extra_info": {"index": index, "split": split, "question": problem.question},
    }


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
