"""Rows that trainers read, from the rows of the generators: prompts with references, pairs, tool queries."""

import json
import random
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from trellis_train.agents.tooluse.data.simulator import answer_of, simulate
from trellis_train.agents.tooluse.formatting.formatter import offered_tools, write_prompt
from trellis_train.agents.tooluse.formatting.hermes import write_turn
from trellis_train.agents.tooluse.formatting.sampling import TaskType
from trellis_train.agents.tooluse.pairs.making import make_pairs
from trellis_train.agents.tooluse.scoring.reward import write_reference
from trellis_train.agents.tooluse.scoring.truth import GroundTruth, Step
from trellis_train.agents.tooluse.tasks import read_task

Row = Mapping[str, Any]
#: The task of each kind of the benchmark.
TASKS: dict[str, TaskType] = {
    "tool_selection": "tool_selection",
    "planning": "multi_step_planning",
    "timing": "timing_decision",
}
DATA_SOURCE, RETRIEVAL_SOURCE = "toolbox", "tool_retrieval"


def write_truth(sample: Row, tools: Mapping[str, Row]) -> GroundTruth:
    """Build the reference of a benchmark sample."""
    steps = [Step(name=call["name"], arguments=call["arguments"]) for call in sample["expected_calls"]]
    last, result = tools[steps[-1].name] if steps else {}, sample.get("answer") or None
    if "returns" in last:  # not of people's own tools, whose results nobody can make up
        result = answer_of(last, simulate(last, steps[-1].arguments or {}))
    return GroundTruth(
        task_type=TASKS[sample["kind"]],
        steps=steps,
        # What a call returns cannot stand in the response that makes it; without a call it can.
        answer=None if steps else result,
        result=result if steps else None,
        optimal_steps=None if sample.get("optimal_steps") == len(steps) else sample.get("optimal_steps"),
        max_steps=sample["max_steps"],
        available_tools=list(sample["tools"]),
    )


def rl_row(
    sample: Row, tools: Mapping[str, Row], *, index: int, distractors: int | None = None
) -> dict[str, Any]:
    """Convert a benchmark sample to a prompt with its reference (``verl-rl``).

    ``distractors``: see ``format_dialog``. Raises ``BadDialog``.
    """
    offered = offered_tools(sample, tools, distractors=distractors)
    truth = write_truth({**sample, "tools": [tool["name"] for tool in offered]}, tools)
    return {
        "data_source": f"{DATA_SOURCE}/{sample['kind']}",
        "prompt": [
            {"role": "system", "content": write_prompt(sample, tools, distractors=distractors)},
            {"role": "user", "content": sample["query"]},
        ],
        "ability": truth.task_type,
        "reward_model": {"style": "rule", "ground_truth": truth.to_text()},
        "extra_info": {
            "index": index,
            "id": sample["id"],
            "split": sample["split"],
            "question": sample["query"],
            "answer": write_reference(truth),
            "tools": json.dumps(offered, ensure_ascii=False),
        },
    }


def retrieval_row(query: Row, tools: Mapping[str, Row], *, index: int) -> dict[str, Any]:
    """Convert a tool query to a row (``verl-rl``); the reference is the tool's name."""
    return {
        "data_source": RETRIEVAL_SOURCE,
        "prompt": [{"role": "user", "content": query["query"]}],
        "ability": "tool_retrieval",
        "reward_model": {"style": "rule", "ground_truth": query["tool"]},
        "extra_info": {
            "index": index,
            "id": query["id"],
            "split": query["split"],
            "question": query["query"],
            "tool": json.dumps(tools[query["tool"]], ensure_ascii=False),
            "category": query["category"],
            "template": "+".join(query["templates"]),
            "hard_negatives": list(query["hard_negatives"]),
        },
    }


def preference_rows(rows: Iterable[Row], *, seed: int) -> Iterator[dict[str, Any]]:
    """Generate a pair per prompt of ``rl_row``: the reference, and the worst of some deliberate mistakes.

    For a first preference run without a model to sample from; pairs of a model's own responses teach more
    (``trellis_train.agents.tooluse.pairs``).
    """
    tasks = [read_task(row, str(row["extra_info"]["id"])) for row in rows]
    responses = [
        [write_reference(task.truth), *_mistakes(task.truth, random.Random(f"{seed}:{task.id}"))]  # noqa: S311
        for task in tasks
    ]
    for pair in make_pairs(tasks, responses).pairs:
        yield pair.as_row()


def _mistakes(truth: GroundTruth, draw: random.Random) -> list[str]:
    """Return responses that get a sample wrong, each in another way."""
    calls = [{"name": step.name, "arguments": step.arguments or {}} for step in truth.steps]
    others = [name for name in truth.available_tools or [] if name not in truth.tools]
    wrong: list[str] = []
    if not calls:
        return [write_turn("", [{"name": draw.choice(others or ["unknown_tool"]), "arguments": {}}])]
    if others:
        swapped = [dict(call) for call in calls]
        swapped[draw.randrange(len(swapped))]["name"] = draw.choice(others)
        wrong.append(write_turn("", swapped))
    if len(calls) > 1:
        left_out = draw.randrange(len(calls))
        wrong.append(write_turn("", [call for place, call in enumerate(calls) if place != left_out]))
    wrong.append(write_turn("", [*calls, calls[-1]]))
    return wrong
