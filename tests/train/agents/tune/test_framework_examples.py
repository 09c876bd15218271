"""Examples of agent frameworks with their own packages, played in the sandbox as a training plays them."""

import asyncio
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.workflows import Message
from trellis_recipes.workflows.package import read_package
from trellis_train.agents.tune import requirements
from trellis_train.agents.tune.isolation import RunnerLimits, WorkflowRunner
from trellis_train.agents.tune.program import WorkflowSource

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

EXAMPLES = Path(__file__).parents[4] / "sdk" / "examples"
LIMITS = RunnerLimits(runners=1, step_timeout_s=120.0, session_timeout_s=240.0, memory_mb=2048)
ADDS = ("add", {"a": 2, "b": 3})


@dataclass
class Script:
    """A model that says what it is told to: a call (name, arguments), or a text."""

    replies: list[Any]
    asked: list[list[Message]] = field(default_factory=list)

    async def answer(self, messages: list[Message], tools: list[Message], options: Message) -> Message:
        said = self.replies[len(self.asked)]
        self.asked.append(messages)
        calls = []
        if not isinstance(said, str):
            assert said[0] in {tool["function"]["name"] for tool in tools}
            calls = [{"id": f"call_{len(self.asked)}", "name": said[0], "arguments": said[1]}]
        return {
            "text": "" if calls else said,
            "raw": str(said),
            "tool_calls": calls,
            "finish_reason": "tool_calls" if calls else "stop",
            "prompt_tokens": 1,
            "completion_tokens": 1,
        }


def prepare(example: str, folder: Path) -> WorkflowSource:
    """The example with its requirements installed, as `trellis tune run` does it."""
    package = folder / example
    shutil.copytree(EXAMPLES / example, package, ignore=shutil.ignore_patterns("__pycache__"))
    requirements.install(read_package(package).requirements, folder / "packages")
    return WorkflowSource.read(str(package), packages=str(folder / "packages"))


@pytest.mark.parametrize(
    ("example", "replies"),
    [
        ("agentscope", [ADDS, "It is 5."]),
        ("smolagents", [ADDS, ("final_answer", {"answer": "5"})]),
        ("langgraph", [ADDS, "It is 5."]),
        ("openai_agents", [ADDS, "It is 5."]),
    ],
)
def test_the_example_calls_its_tool_and_is_rewarded(example: str, replies: list[Any], tmp_path: Path) -> None:
    model = Script(replies)
    runner = WorkflowRunner(prepare(example, tmp_path), LIMITS)
    try:
        found = asyncio.run(runner.run({"question": "What is 2 + 3?", "answer": "5"}, model))
    finally:
        runner.close()

    assert found.reward == 1.0
    asked, told = model.asked
    assert "What is 2 + 3?" in str(asked)
    # The second call goes on from the first and shows what the tool gave, so that both are one sample.
    assert told[: len(asked)] == asked
    assert "5" in str(told[len(asked) :])
