"""Sessions as verl gets them: a sample a branch, one reward on all, and failures that teach nothing."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.agents import AgentTask, Trajectory
from trellis_testing.episodes import ScriptedServer, loop_arguments, make_tool_tokenizer
from trellis_train.agents.preflight import AgentUnusable, check_tune
from trellis_train.agents.tune.loop import NO_CALL, TuneLoop
from trellis_train.agents.tune.options import BadOptions, Options

CODE = """
from trellis import TunableChatModel, WorkflowOutput


async def workflow(task: dict, model: TunableChatModel):
    if task["question"] == "silent":
        return 1.0
    first = await model(task["messages"])
    if task["question"] == "broken":
        raise ValueError("no")
    await model([{"role": "user", "content": "edited"}, first.message, {"role": "user", "content": "and?"}])
    return WorkflowOutput(reward=0.5, metrics={"correct": 1.0})
"""


def play(folder: Path, *questions: str, **lengths: int) -> list[Any]:
    """The samples of a session for each question."""
    (folder / "workflow.py").write_text(CODE)

    async def play_all() -> list[Any]:
        tokenizer = make_tool_tokenizer()
        server = ScriptedServer(tokenizer, ["one", "two"])
        loop = TuneLoop(
            **loop_arguments(server, tokenizer, **lengths),
            workflow_path=f"{folder / 'workflow.py'}:workflow",
            environment_path=None,
            log_folder=None,
            options={"runners": 2, "step_timeout": 5.0, "reply_tokens": None},
        )
        rows = [{"raw_prompt": [{"role": "user", "content": question}]} for question in questions]
        try:
            return await asyncio.gather(*(loop.run({"temperature": 1.0}, **row) for row in rows))
        finally:
            loop.close()

    return asyncio.run(play_all())


def test_each_branch_is_a_sample_with_the_sessions_reward_and_the_last_tells_it(tmp_path: Path) -> None:
    (samples,) = play(tmp_path, "hello")

    assert [sample.reward_score for sample in samples] == [0.5, 0.5]
    assert [sum(sample.response_mask) for sample in samples] == [4, 4]  # three bytes and the end of the turn
    assert all(
        len(sample.response_ids) == len(sample.response_mask) == len(sample.response_logprobs)
        for sample in samples
    )
    assert [sample.extra_fields["reward_parts"] for sample in samples] == [{"correct": 1.0}] * 2
    assert samples[0].extra_fields["trajectory"] is None
    told = Trajectory.model_validate(samples[-1].extra_fields["trajectory"])
    assert (told.turns[-2].text, told.turns[-1].is_trained, told.stop_reason) == ("and?", True, "answered")


def test_failed_sessions_give_one_sample_without_a_trained_token(tmp_path: Path) -> None:
    good, broken, silent, long = play(tmp_path, "hello", "broken", "silent", "x" * 300, prompt_length=200)

    for samples, kind in ((broken, "ValueError"), (silent, "no model call"), (long, "ContextExceeded")):
        (sample,) = samples
        assert sample.reward_score == 0.0
        assert not any(sample.response_mask)
        assert len(sample.prompt_ids) <= 200
        assert sample.extra_fields["reward_extra_info"]["workflow_error"] == 1.0
        assert sample.extra_fields["trajectory"]["stop_reason"] == f"workflow_error:{kind}"
        assert sample.extra_fields["agent"]["answered"] == 0.0
        assert sample.extra_fields["reward_parts"] == {}
    keys = {tuple(each.extra_fields["reward_extra_info"]) for each in (*good, *broken, *silent, *long)}
    assert len(keys) == 1
    assert NO_CALL


def test_a_job_whose_workflow_cannot_run_is_refused_before_its_engine_starts(tmp_path: Path) -> None:
    file = tmp_path / "workflow.py"
    file.write_text(CODE)
    check_tune(AgentTask(kind="tune", workflow_path=str(file), options={"runners": 2}))
    for workflow, options, problem in (
        (None, {}, "no workflow"),
        (str(tmp_path / "none.py"), {}, "cannot be read"),
        (str(file), {"runers": 2}, "runers"),
        (str(file), {"runners": 0}, "above 0"),
    ):
        with pytest.raises(AgentUnusable, match=problem):
            check_tune(AgentTask(kind="tune", workflow_path=workflow, options=options))
    file.write_text(f"{CODE}\nraise RuntimeError('at import')")
    with pytest.raises(AgentUnusable, match=r"at import"):
        check_tune(AgentTask(kind="tune", workflow_path=str(file)))


def test_options_are_those_of_the_recipe() -> None:
    assert Options.parse({"workflow": "wfl_1", "reply_tokens": None}).as_limits().runners == 16
    with pytest.raises(BadOptions, match="unknown tune option"):
        Options.parse({"threads": 2})
