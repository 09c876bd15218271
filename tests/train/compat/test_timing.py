"""What a step's time goes into: verl's own timers and agent loops tell ours."""

import asyncio
import inspect
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from trellis_train.compat.catalogue import list_changes
from trellis_train.hooks.event_spool import Spool
from trellis_train.hooks.trainer import _ReportingTrainer, with_hooks
from trellis_train.rollout.response_times import SPAN_KEY, begin_response

pytestmark = pytest.mark.timeout(300)
TRAINER = "verl.trainer.ppo.v1.trainer_base.PPOTrainer"
WORKER = "verl.trainer.ppo.v1.agent_loop_tq.AgentLoopWorkerTQ"


def list_overridden(ours: type[Any], theirs: type[Any]) -> set[str]:
    """Private methods of an engine that a class of ours replaces."""
    return {name for name in vars(ours) if re.match("_[a-z]", name) and hasattr(theirs, name)}


def test_what_is_overridden_for_the_timeline_is_registered() -> None:
    from trellis_train.rollout.worker import AgentLoopWorker, WorkerTQ
    from verl.trainer.ppo.v1.trainer_base import PPOTrainer

    overridden = {f"{WORKER}.{name}" for name in list_overridden(AgentLoopWorker, WorkerTQ)}
    overridden |= {f"{TRAINER}.{name}" for name in list_overridden(_ReportingTrainer, PPOTrainer)}
    assert {f"{WORKER}._agent_loop_postprocess", f"{TRAINER}._compute_metrics"} < overridden

    registered = {entry.target for entry in list_changes() if entry.way == "overridden"}
    assert overridden | {f"{TRAINER}.timing_raw"} <= registered


def test_verls_timers_write_into_what_keeps_the_spans(tmp_path: Path) -> None:
    from verl.trainer.ppo.v1.trainer_base import TRAINER_REGISTRY, PPOTrainer
    from verl.utils.debug import marked_timer

    trainer = object.__new__(with_hooks(TRAINER_REGISTRY["sync"], Spool(tmp_path, "trainer")))
    trainer.timing_raw = {}
    for _ in range(2):  # the second adds to the first
        with marked_timer("gen", trainer.timing_raw):
            pass

    assert [phase for phase, _, _ in trainer._timings.spans] == ["gen", "gen"]
    assert trainer.timing_raw["gen"] == pytest.approx(
        sum(end - start for _, start, end in trainer._timings.spans), abs=1e-6
    )
    assert "self.timing_raw = {}" in inspect.getsource(PPOTrainer.fit), "each step has times of its own"


async def _process_nothing(_worker: Any, output: Any, *given: Any, **more: Any) -> Any:
    return output.extra_fields.copy(), given, more


async def process(worker: Any) -> Any:
    begin_response()
    return await worker._agent_loop_postprocess(SimpleNamespace(extra_fields={}), False, raw_prompt=[])


def test_a_response_is_timed_before_verl_processes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from trellis_train.rollout.worker import AgentLoopWorker, WorkerTQ

    assert "self._agent_loop_postprocess(output, " in inspect.getsource(WorkerTQ._run_agent_loop)
    monkeypatch.setattr(WorkerTQ, "_agent_loop_postprocess", _process_nothing)

    fields, given, more = asyncio.run(process(object.__new__(AgentLoopWorker)))

    start, end = fields[SPAN_KEY]
    assert start <= end
    assert (given, more) == ((False,), {"raw_prompt": []})
