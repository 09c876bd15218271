"""A real GRPO job on a CPU, from the spec to a checkpoint: stopped, resumed, killed."""

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from trellis_contracts.spec import EXIT_STOPPED

from .conftest import Run

pytestmark = [pytest.mark.training, pytest.mark.timeout(900)]


@pytest.fixture(scope="module")
def stopped_run(start_run: Callable[..., Run]) -> Run:
    """A run of 50 steps with a validation first, asked to stop after its second step."""
    run = start_run(
        "trainer.total_training_steps=50", "trainer.test_freq=50", "trainer.val_before_train=True"
    )
    run.wait_for(lambda: any(event["step"] == 2 for event in run.events("metrics")))
    (run.attempt_dir / "stop").touch()
    run.process.wait(timeout=240)
    return run


@pytest.fixture(scope="module")
def resumed_run(stopped_run: Run, start_run: Callable[..., Run]) -> Run:
    """The second attempt, from the checkpoint at which the first one left; killed after two steps."""
    checkpoint = stopped_run.events("checkpoint")[-1]["path"]
    run = start_run(
        "trainer.total_training_steps=50",
        "trainer.test_freq=-1",
        "trainer.val_before_train=False",
        attempt=2,
        resume_from=checkpoint,
    )
    run.wait_for(lambda: len(run.events("metrics")) >= 2)
    return run


def test_a_stopped_run_says_so_with_its_exit_code(stopped_run: Run) -> None:
    assert stopped_run.process.returncode == EXIT_STOPPED, stopped_run.log[-4000:]


def test_every_step_has_metrics_under_verls_own_names(stopped_run: Run) -> None:
    steps = {event["step"]: event["values"] for event in stopped_run.events("metrics")}

    assert list(steps) == list(range(len(steps)))
    assert any(name.startswith("val-core/addition/") for name in steps[0])
    assert {"actor/pg_loss", "critic/score/mean", "perf/throughput", "timing_s/step"} <= set(steps[1])


def test_sampler_and_trainer_agree_on_the_probabilities(stopped_run: Run) -> None:
    """The weights of the trainer reached the rollout engine: after a step too, not only at the start."""
    for event in stopped_run.events("metrics")[1:]:
        assert event["values"]["training/rollout_probs_diff_max"] < 0.02


def test_every_step_has_rollouts_grouped_by_prompt(stopped_run: Run) -> None:
    train = [event for event in stopped_run.events("rollouts") if event["split"] == "train"]
    groups = [rollout["group"] for rollout in train[0]["rollouts"]]

    assert len(groups) == 8
    assert {groups.count(group) for group in groups} == {2}
    for rollout in train[0]["rollouts"]:
        assert rollout["reward_parts"] == {"exact": rollout["score"]}
        assert rollout["advantage"] is not None
        assert 1 <= rollout["response_tokens"] <= 8


def test_every_step_tells_of_the_load_of_its_rollout_engine(stopped_run: Run) -> None:
    timelines = stopped_run.events("timeline")

    assert timelines
    for event in timelines:
        (engine,) = event["engines"]
        assert (engine["name"], engine["running"][-1], engine["waiting"][-1]) == ("engine 0", 0, 0)
        assert max(engine["running"]) > 0
        assert 0 < max(engine["kv_use"]) <= 1
        assert 0 <= engine["at_s"][0] <= engine["at_s"][-1] <= event["duration_s"]
    trained = [event["values"] for event in stopped_run.events("metrics") if event["step"] > 0]
    assert trained
    assert all(values["rollout_engine/running/mean"] > 0 for values in trained)


def test_every_process_of_a_step_tells_what_it_did_when(stopped_run: Run) -> None:
    for event in stopped_run.events("timeline"):
        lanes = {lane["name"]: lane for lane in event["lanes"]}
        assert set(lanes) == {"trainer", "worker 0", "engine 0", "agent_loop 0"}
        assert len({lane["place"]["pid"] for lane in lanes.values()}) == len(lanes)
        phases = {name: {span["phase"] for span in lane["spans"]} for name, lane in lanes.items()}
        assert {"log_prob", "update_actor", "update_weights"} <= phases["worker 0"]
        assert (phases["engine 0"], phases["agent_loop 0"]) == ({"generate"}, {"responses", "reward"})
        for lane in lanes.values():
            assert all(0 <= span["start_s"] < span["end_s"] <= event["duration_s"] for span in lane["spans"])
            assert not lane["place"]["gpus"], "slots of a CPU are no GPUs"


def test_a_response_waits_is_generated_and_scored(stopped_run: Run) -> None:
    for event in stopped_run.events("timeline"):
        assert event["response_count"] == len(event["responses"]) == 8
        for response in event["responses"]:
            phases = [part["phase"] for part in response["parts"]]
            assert phases in (["queued", "generate", "reward"], ["generate", "reward"])
            moments = [moment for part in response["parts"] for moment in (part["start_s"], part["end_s"])]
            assert moments == sorted(moments)
            assert response["start_s"] <= moments[0] + 1e-3


def test_how_much_of_a_step_processes_work_is_measured(stopped_run: Run) -> None:
    for event in stopped_run.events("metrics")[1:]:
        assert 0 < event["values"]["process_busy/workers"] < 1
        assert 0 < event["values"]["process_busy/engines"] < 1


def test_validation_rollouts_carry_the_true_answer(stopped_run: Run) -> None:
    (event,) = [event for event in stopped_run.events("rollouts") if event["split"] == "validation"]

    assert event["step"] == 0
    assert {rollout["ground_truth"] for rollout in event["rollouts"]} == {"0", "1", "2", "3"}


def test_it_leaves_at_a_checkpoint_of_its_last_step(stopped_run: Run) -> None:
    (checkpoint,) = stopped_run.events("checkpoint")

    assert checkpoint["step"] == stopped_run.events("metrics")[-1]["step"]
    assert Path(checkpoint["hf_path"], "model.safetensors").is_file()
    files = [file for file in Path(checkpoint["path"]).rglob("*") if file.is_file()]
    assert checkpoint["size_bytes"] == sum(file.stat().st_size for file in files)


def test_nothing_is_left_running_after_a_stop(stopped_run: Run) -> None:
    assert wait_until_gone(stopped_run) == []


def test_a_resumed_run_continues_at_the_next_step(stopped_run: Run, resumed_run: Run) -> None:
    last = stopped_run.events("checkpoint")[-1]["step"]

    assert [event["step"] for event in resumed_run.events("metrics")][:2] == [last + 1, last + 2]


def test_a_killed_run_leaves_no_process(resumed_run: Run) -> None:
    assert len(resumed_run.processes()) > 3

    os.kill(resumed_run.process.pid, signal.SIGKILL)
    resumed_run.process.wait()

    assert wait_until_gone(resumed_run) == []


def wait_until_gone(run: Run, timeout_s: float = 40) -> list[int]:
    """The processes of ``run`` that are alive after at most ``timeout_s``.

    The agents of the private Ray node notice late that it is gone; a job on the platform has none
    of its own, and its subreaper ends whatever it started (tests/e2e/test_runs_that_die.py).
    """
    deadline = time.monotonic() + timeout_s
    while (left := [pid for pid in run.processes() if not is_ray_agent(pid)]) and time.monotonic() < deadline:
        time.sleep(0.5)
    return left


def is_ray_agent(pid: int) -> bool:
    """Whether the process is one of Ray's own two helpers of a node."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False  # it has ended: the next look does not find it
    return command.startswith((b"ray::DashboardAgent", b"ray::RuntimeEnvAgent"))
