"""Failed sessions are counted by kind, told with file and line, and end a run before anything is computed."""

import asyncio
import json
import logging
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.attempt import SESSIONS_FILE
from trellis_testing.episodes import ScriptedServer, loop_arguments, make_tool_tokenizer
from trellis_train.agents.tune.loop import TuneLoop
from trellis_train.hooks.agent_metrics import MeasuresEpisodes, average
from trellis_train.hooks.event_spool import ATTEMPT_DIR_VARIABLE
from trellis_train.hooks.session_failures import (
    FAILURE_KEY,
    Failure,
    SessionCounts,
    SessionsFailing,
    SessionWatch,
    count_sessions,
)
from trellis_train.supervise.failure_causes import judge

CODE = """
from trellis import TunableChatModel


def score(task: dict) -> float:
    return float(task["qestion"] == "x")


async def workflow(task: dict, model: TunableChatModel) -> float:
    await model(task["messages"])
    return score(task)
"""
TYPO = Failure("KeyError", "KeyError: 'qestion' (agent.py, line 6)", "Traceback ...\nKeyError: 'qestion'")
SLOW = Failure("timeout", "the session took longer than 9 s")


@pytest.fixture
def attempt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv(ATTEMPT_DIR_VARIABLE, str(tmp_path))
    return tmp_path


def play_typo(folder: Path) -> Any:
    (folder / "agent.py").write_text(CODE)

    async def go() -> Any:
        tokenizer = make_tool_tokenizer()
        loop = TuneLoop(
            **loop_arguments(ScriptedServer(tokenizer, ["one"]), tokenizer),
            workflow_path=str(folder / "agent.py"),
            options={"runners": 1, "step_timeout": 5.0},
        )
        try:
            return await loop.run({}, raw_prompt=[{"role": "user", "content": "hello"}])
        finally:
            loop.close()

    (sample,) = asyncio.run(go())
    return sample


def test_a_failed_session_carries_its_kind_its_place_and_its_traceback(attempt: Path) -> None:
    sample = play_typo(attempt)

    counts = count_sessions([sample.extra_fields])
    (failure,) = counts.failures
    assert (failure.kind, failure.message) == ("KeyError", "KeyError: 'qestion' (agent.py, line 6)")
    assert 'File "agent.py", line 11, in workflow\n    return score(task)' in failure.traceback
    assert failure.traceback.endswith("KeyError: 'qestion'")
    assert sample.extra_fields["trajectory"]["error"] == failure.traceback
    assert average([sample.extra_fields])["agent/workflow_error/mean"] == 1.0


def test_a_step_of_failed_sessions_ends_the_run_with_counts_and_the_first(
    attempt: Path, caplog: pytest.LogCaptureFixture
) -> None:
    counts = SessionCounts(8, [TYPO, SLOW, TYPO, TYPO, TYPO])

    with caplog.at_level(logging.WARNING), pytest.raises(SessionsFailing) as caught:
        SessionWatch().take(counts, step=3, split="train")

    first, *traceback = str(caught.value).splitlines()
    assert first == f"5 of the 8 sessions of step 3 failed: 4 KeyError, 1 timeout. First: {TYPO.message}"
    assert traceback == TYPO.traceback.splitlines()
    assert TYPO.traceback in caplog.text
    assert SLOW.message in caplog.text
    noted = json.loads((attempt / SESSIONS_FILE).read_text())
    assert noted == {
        "step": 3, "split": "train", "sessions": 8, "failed": {"KeyError": 4, "timeout": 1},
        "first": TYPO.message,
    }  # fmt: skip


def test_fewer_failures_are_logged_and_a_validation_ends_a_run_only_where_all_failed(
    caplog: pytest.LogCaptureFixture,
) -> None:
    watch = SessionWatch()
    with caplog.at_level(logging.WARNING):
        watch.take(SessionCounts(8, [TYPO] * 4), step=1, split="train")
        watch.take(SessionCounts(8, [TYPO] * 4), step=2, split="train")
        watch.take(SessionCounts(4, [TYPO] * 3), step=2, split="validation")
    assert caplog.text.count("4 of the 8 sessions of step") == 2
    assert caplog.text.count(TYPO.traceback) == 1
    with pytest.raises(SessionsFailing, match="4 of the 4 validation sessions before step 0 failed"):
        watch.take(SessionCounts(4, [TYPO] * 4), step=0, split="validation")
    watch.take(SessionCounts(0, []), step=1, split="train")


def test_the_cause_of_the_failure_is_the_workflows_not_the_engines() -> None:
    error = "trellis_train.hooks.session_failures.SessionsFailing: 8 of the 8 sessions of step 1 failed"
    verdict = judge(1, ["Traceback ...", f"{error}: 8 KeyError. First: boom", "KeyError: 'prompt'"])

    assert (verdict.outcome, verdict.cause) == ("failed", "sessions_failing")
    assert (
        verdict.reason == "The workflow fails: 8 of the 8 sessions of step 1 failed: 8 KeyError. First: boom"
    )


def test_the_trainer_looks_at_sessions_before_it_computes_and_shows_the_rollouts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported = []

    class Buffer:
        def sample(self, **_: Any) -> tuple[Any, dict[str, Any]]:
            return type("Batch", (), {"partition_id": "train"})(), {}

    class Trainer:
        global_steps = 1

        def _build_replay_buffer(self) -> Buffer:
            return Buffer()

    class Reporting(MeasuresEpisodes, Trainer):
        def _report_rollouts(self, batch: Any, split: str) -> None:
            reported.append(split)

    monkeypatch.setattr(
        "trellis_train.hooks.agent_metrics.read_sessions", lambda _batch: SessionCounts(2, [TYPO, TYPO])
    )
    with pytest.raises(SessionsFailing, match="2 of the 2 sessions of step 1 failed"):
        Reporting()._build_replay_buffer().sample()
    assert reported == ["train"]


def test_sessions_that_went_well_say_nothing() -> None:
    assert count_sessions([{FAILURE_KEY: None}, {}]).failures == []
