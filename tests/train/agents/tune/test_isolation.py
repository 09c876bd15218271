"""Workflows run in the sandbox, and whatever they do ends their own session only (C7, C8)."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.workflows import JudgeOutput, TunableChatModel, WorkflowOutput
from trellis_testing.episodes import ScriptedServer, loop_arguments, make_tool_tokenizer
from trellis_train.agents.tune.isolation import RunnerLimits, SessionFailed, SessionResult, WorkflowRunner
from trellis_train.agents.tune.model import RecordingChatModel
from trellis_train.agents.tune.program import WorkflowSource, WorkflowUnusable, write_pickle
from trellis_train.rollout.synchronous_executor import Inline
from verl.experimental.agent_loop.agent_loop import AgentLoopBase

LIMITS = RunnerLimits(runners=4, step_timeout_s=1.5, session_timeout_s=10.0, memory_mb=512)
#: What the task asks for is done by the workflow.
FILE = """
import asyncio, socket, sys
from typing import Dict
from trellis import JudgeOutput, TunableChatModel, WorkflowOutput


async def workflow(task: Dict, model: TunableChatModel) -> float:
    what = task["do"]
    reply = await model([{"role": "user", "content": "hello"}])
    if what == "raise":
        raise KeyError("lost")
    if what == "hang":
        while True:
            pass
    if what == "wait":
        await asyncio.sleep(3600)
    if what == "read":
        return len(open(task["path"]).read())
    if what == "connect":
        socket.create_connection(("127.0.0.1", task["port"]), timeout=1)
    if what == "exit":
        sys.exit(0)
    if what == "remember":
        return [0.0] * 10**10
    if what == "return":
        return eval(task["value"])
    if what == "judged":
        return WorkflowOutput(response=reply.text, metrics={"asked": 1})
    if what == "rewarded":
        return WorkflowOutput(reward=0.25, metrics={"asked": 1})
    if what == "side by side":
        replies = await asyncio.gather(*(model([{"role": "user", "content": str(i)}]) for i in range(3)))
        return float(len(replies))
    return 0.25


async def judge(task, response):
    return JudgeOutput(reward=0.25 if response == "one" else float("nan"), metrics={"judged": 1})
"""


class Loop(AgentLoopBase):
    """verl's helpers, and nothing that runs."""

    async def run(self, sampling_params: dict[str, Any], **kwargs: Any) -> Any:
        raise NotImplementedError


Session = Callable[..., SessionResult]


def make_model(script: Any = ("one", "two")) -> RecordingChatModel:
    tokenizer = make_tool_tokenizer()
    loop = Loop(**loop_arguments(ScriptedServer(tokenizer, script), tokenizer))
    loop.loop = Inline()
    return RecordingChatModel(loop, {"temperature": 1.0})


def play(runner: WorkflowRunner, *tasks: dict[str, Any]) -> list[Any]:
    async def all_at_once() -> list[Any]:
        runner._places = None  # a semaphore belongs to one event loop
        sessions = [runner.run(task, make_model()) for task in tasks]
        return await asyncio.gather(*sessions, return_exceptions=True)

    return asyncio.run(all_at_once())


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkflowRunner]:
    file = tmp_path_factory.mktemp("workflow") / "workflow.py"
    file.write_text(FILE)
    runner = WorkflowRunner(WorkflowSource.read(str(file)), LIMITS)
    yield runner
    runner.close()


def test_one_bad_session_leaves_the_others_their_results(runner: WorkflowRunner, tmp_path: Path) -> None:
    # C8
    secret = tmp_path / "secret"
    secret.write_text("token")
    bad = [
        {"do": "raise"},
        {"do": "hang"},
        {"do": "wait"},
        {"do": "read", "path": str(secret)},
        {"do": "connect", "port": 22},
        {"do": "exit"},
        {"do": "remember"},
    ]
    good = [{"do": "answer"}] * 4

    found = play(runner, *bad, *good)

    problems = [str(each) for each in found[: len(bad)]]
    assert all(isinstance(each, SessionFailed) for each in found[: len(bad)]), found
    assert problems[0] == "KeyError: 'lost' (workflow.py, line 11)"
    assert "took too long" in problems[1]
    assert "took too long" in problems[2]
    assert problems[3].startswith("FileNotFoundError")
    assert problems[4].startswith("PermissionError")
    assert "SystemExit" in problems[5]
    assert problems[6].startswith("MemoryError")
    assert found[len(bad) :] == [SessionResult(0.25)] * 4


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("float('nan')", "the reward is nan, not a finite number"),
        ("float('inf')", "the reward is inf, not a finite number"),
        ("'much'", "the reward is str, not a number"),
        ("None", "the reward is NoneType, not a number"),
        ("WorkflowOutput(reward=1, metrics={'x': float('nan')})", "the metric x is nan"),
    ],
)
def test_what_is_no_reward_is_refused(runner: WorkflowRunner, value: str, problem: str) -> None:
    # C7
    (found,) = play(runner, {"do": "return", "value": value})
    assert isinstance(found, SessionFailed)
    assert problem in str(found)


def test_a_workflows_own_reward_and_its_judges_count_alike(runner: WorkflowRunner) -> None:
    # C7
    judged, rewarded = play(runner, {"do": "judged"}, {"do": "rewarded"})
    assert judged == SessionResult(0.25, {"asked": 1.0, "judged": 1.0}, "one")
    assert rewarded == SessionResult(0.25, {"asked": 1.0})


def test_a_judge_that_gives_nan_fails_its_session(runner: WorkflowRunner) -> None:
    async def play_one() -> Any:
        runner._places = None
        return await runner.run({"do": "judged"}, make_model(["another"]))

    with pytest.raises(SessionFailed, match="the reward is nan"):
        asyncio.run(play_one())


def test_calls_side_by_side_are_answered(runner: WorkflowRunner) -> None:
    assert play(runner, {"do": "side by side"}) == [SessionResult(3.0)]


def test_a_session_ends_when_its_time_is_over_although_the_model_is_slow(tmp_path: Path) -> None:
    file = tmp_path / "w.py"
    file.write_text(FILE)
    runner = WorkflowRunner(WorkflowSource.read(f"{file}:workflow"), RunnerLimits(1, 0.5, 1.5, 512))

    async def slow() -> Any:
        tokenizer = make_tool_tokenizer()
        loop = Loop(**loop_arguments(ScriptedServer(tokenizer, ["one"], token_s=5.0), tokenizer))
        loop.loop = Inline()
        return await runner.run({"do": "answer"}, RecordingChatModel(loop, {}))

    try:
        with pytest.raises(SessionFailed, match=r"longer than 0\.5 s") as caught:
            asyncio.run(slow())
    finally:
        runner.close()
    assert caught.value.is_timeout


async def pickled(task: dict[str, Any], model: TunableChatModel) -> WorkflowOutput:
    reply = await model.client.chat.completions.create(messages=[{"role": "user", "content": "hello"}])
    return WorkflowOutput(response=reply.choices[0].message.content + task["end"])


async def pickled_judge(task: dict[str, Any], response: Any) -> JudgeOutput:
    return JudgeOutput(helper(response))


def helper(response: str) -> float:
    return 0.75 if response == "one!" else 0.0


def test_functions_that_were_pickled_run_with_what_they_use(tmp_path: Path) -> None:
    write_pickle(tmp_path / "workflow.pkl", pickled, pickled_judge)
    runner = WorkflowRunner(WorkflowSource.read(str(tmp_path / "workflow.pkl")), LIMITS)
    try:
        assert play(runner, {"end": "!"}) == [SessionResult(0.75, {}, "one!")]
    finally:
        runner.close()


@pytest.mark.parametrize(
    ("code", "problem"),
    [
        ("def workflow(", "not valid Python: line 1"),
        ("x = 1", "0 async functions"),
        ("async def a(task, model): ...\nasync def b(task, model): ...", "2 async functions"),
        ("import nowhere\nasync def workflow(task, model): ...", "No module named 'nowhere'"),
    ],
)
def test_a_file_without_a_workflow_is_refused_before_anything_runs(
    tmp_path: Path, code: str, problem: str
) -> None:
    file = tmp_path / "w.py"
    file.write_text(code)
    with pytest.raises(WorkflowUnusable, match=problem):
        WorkflowRunner(WorkflowSource.read(str(file)), LIMITS).check()
    with pytest.raises(WorkflowUnusable, match="cannot be read"):
        WorkflowSource.read(str(tmp_path / "none.py"))
