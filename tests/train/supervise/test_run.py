"""A whole attempt with a small engine: what the platform hears of it, whatever happens to it."""

import hashlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from trellis_contracts.agents import AgentTask
from trellis_contracts.attempt import MIX_FILE, PREPARED_FOLDER, REWARDS_FILE
from trellis_contracts.recipe import Engine
from trellis_contracts.rewards import RewardFileSource, RewardResources
from trellis_contracts.spec import EXIT_BAD_SPEC, EXIT_CRASHED, EXIT_STOPPED, ExportTask, JobSpec
from trellis_contracts.spool import SpoolReader
from trellis_testing.waiting import wait_until
from trellis_train import entrypoint

#: The real parent, with the engine and the data preparation replaced by small ones.
PARENT = """
import sys, types
from pathlib import Path
prepare = types.ModuleType("trellis_train.data.prepare")
def fail_or_pass(spec, *, is_stopped):
    if {preparation_error!r}:
        raise ValueError({preparation_error!r})
prepare.prepare = fail_or_pass
sys.modules["trellis_train.data"] = types.ModuleType("trellis_train.data")
sys.modules["trellis_train.data.prepare"] = prepare
from trellis_train.entrypoint import load_spec, read_token
from trellis_train.supervise.run import SupervisedRun
spec = load_spec(Path({spec_path!r}))
command = [sys.executable, "-c", {engine!r}]
code = SupervisedRun(spec, read_token(Path(spec.attempt_dir)), command, drain_timeout_s={drain_s}).execute()
heavy = [name for name in ("torch", "verl", "vllm", "ray", "transformers") if name in sys.modules]
assert not heavy, heavy
sys.exit(code)
"""

#: Steps until it is asked to stop, as the trainers do.
STEPPING_ENGINE = """
import sys, time
from datetime import UTC, datetime
from trellis_contracts.events import MetricsEvent
from trellis_train.hooks.event_spool import Spool, is_stop_requested
spool = Spool.from_environment("trainer")
for step in range(1, 3000):
    spool.write(MetricsEvent(time=datetime.now(UTC), step=step, values={"loss": 1 / step}))
    print("step", step, flush=True)
    if is_stop_requested():
        print("checkpoint saved", flush=True)
        sys.exit(75)
    time.sleep(0.02)
"""


@pytest.fixture
def start(spec: JobSpec) -> Iterator[Callable[..., subprocess.Popen[str]]]:
    parents: list[subprocess.Popen[str]] = []

    def start_parent(engine: str, **options: Any) -> subprocess.Popen[str]:
        script = PARENT.format(
            engine=engine,
            spec_path=str(Path(spec.attempt_dir) / "spec.json"),
            preparation_error=options.get("preparation_error", ""),
            drain_s=options.get("drain_s", 20),
        )
        environment = {**os.environ, "HF_TOKEN": "hf-secret-value", **options.get("environment", {})}
        parents.append(subprocess.Popen([sys.executable, "-c", script], env=environment, text=True))
        return parents[-1]

    yield start_parent
    for parent in parents:
        if parent.poll() is None:
            parent.kill()
            parent.wait()


def read_outcome(platform: Any) -> Any:
    (outcome,) = platform.of_kind("outcome")
    assert platform.events[-1] is outcome
    return outcome


def test_a_run_that_succeeds_is_reported_from_preparing_to_outcome(start: Any, platform: Any) -> None:
    parent = start("print('hello'); import sys; print('careful', file=sys.stderr)")

    exit_code = parent.wait(20)

    assert exit_code == 0
    assert platform.events[0].phase == "preparing"
    assert platform.log_lines("stdout") == ["hello"]
    assert platform.log_lines("stderr") == ["careful"]
    assert read_outcome(platform).outcome == "succeeded"
    assert platform.heartbeats


def test_the_rows_that_a_recipe_chooses_are_metrics(start: Any, platform: Any, spec: JobSpec) -> None:
    prepared = Path(spec.attempt_dir) / PREPARED_FOLDER
    prepared.mkdir()
    counts = {"rows": 30, "dataset_rows": 90, "left_out_rows": 65, "replayed_rows": 5}
    kinds = {"timing_decision": 10, "tool_selection": 20}
    (prepared / MIX_FILE).write_text(json.dumps({**counts, "task_types": kinds}))

    assert start("print('hello')").wait(20) == 0

    (event,) = platform.of_kind("metrics")
    assert event.step == 0
    assert event.values == {
        **{f"data/{name}": count for name, count in counts.items()},
        **{f"data/rows/{kind}": count for kind, count in kinds.items()},
    }


def test_the_manifest_tells_how_to_run_again_without_secrets(
    start: Any, platform: Any, spec: JobSpec
) -> None:
    composition = {"config": {"trainer": {"seed": 7}}, "command": "python -m verl.trainer.main_ppo a.b=1"}
    (Path(spec.attempt_dir) / "composition.json").write_text(json.dumps(composition))
    parent = start("import os; print('my token is', os.environ['HF_TOKEN'])")

    parent.wait(20)

    (event,) = platform.of_kind("manifest")
    manifest = event.manifest
    assert manifest["config"] == composition["config"]
    assert manifest["command"] == composition["command"]
    assert manifest["seeds"] == {"run": 7}
    assert manifest["train_data"]["sha256"] == "0" * 64
    assert manifest["packages"]["pydantic"]
    assert manifest["hardware"]["cpu_count"] == os.cpu_count()
    assert "hf-secret-value" not in json.dumps([event.model_dump(mode="json") for event in platform.events])
    assert platform.log_lines("stdout") == ["my token is ***"]


def test_a_run_that_could_not_be_isolated_says_so_once_in_log_and_manifest(start: Any, platform: Any) -> None:
    start("print('hello')", environment={"TRELLIS_ISOLATION": "it is forbidden"}).wait(20)

    said = [line for line in platform.log_lines("platform") if "isolated" in line]
    assert said == ["The run's processes are not isolated from the platform's files: it is forbidden."]
    assert platform.of_kind("manifest")[0].manifest["isolation"] == "it is forbidden"


def test_nothing_temporary_stays_in_the_attempts_folder(
    spec: JobSpec, monkeypatch: pytest.MonkeyPatch
) -> None:
    left = Path(spec.attempt_dir) / "tmp" / "of-a-worker"
    left.mkdir(parents=True)
    monkeypatch.setattr(entrypoint.SupervisedRun, "execute", lambda _self: 0)

    assert entrypoint.main([f"{spec.attempt_dir}/spec.json"]) == 0

    assert not left.parent.exists()


def test_the_engine_computes_on_all_cores_though_ray_gives_its_job_one_thread(
    start: Any, platform: Any, spec: JobSpec
) -> None:
    assert (spec.platform, spec.gpus) == ("cpu", 1)
    engine = "import os; print(os.environ['OMP_NUM_THREADS'])"

    start(engine, environment={"OMP_NUM_THREADS": "1"}).wait(20)

    assert platform.log_lines("stdout") == [str(len(os.sched_getaffinity(0)))]


def test_a_failed_run_reports_its_cause(start: Any, platform: Any) -> None:
    parent = start("raise KeyError('reward_model')")

    exit_code = parent.wait(20)

    outcome = read_outcome(platform)
    assert exit_code == 1
    assert (outcome.outcome, outcome.cause, outcome.exit_code) == ("failed", "missing_column", 1)
    assert outcome.reason == "The training data is missing the column 'reward_model'."


def test_bad_data_fail_the_run_before_the_engine_starts(start: Any, platform: Any) -> None:
    parent = start("print('never')", preparation_error="Line 3 has no answer.")

    exit_code = parent.wait(20)

    outcome = read_outcome(platform)
    assert exit_code == 1
    assert (outcome.cause, outcome.reason) == ("bad_data", "Line 3 has no answer.")
    assert platform.log_lines("stdout") == []


def test_a_missing_database_of_an_agent_fails_the_run_before_the_engine_starts(
    start: Any, platform: Any, spec: JobSpec
) -> None:
    agent = AgentTask(kind="linksearch", environment_path=str(Path(spec.attempt_dir) / "nowhere"))
    acting = spec.model_copy(update={"agent": agent})
    (Path(spec.attempt_dir) / "spec.json").write_text(acting.model_dump_json())

    exit_code = start("print('never')").wait(60)

    outcome = read_outcome(platform)
    assert (exit_code, outcome.outcome, outcome.cause) == (1, "failed", "agent_unusable")
    assert "profile database not found:" in str(outcome.reason)
    assert platform.log_lines("stdout") == []


def test_a_reward_file_that_does_not_load_fails_the_run_before_the_engine_starts(
    start: Any, platform: Any, spec: JobSpec
) -> None:
    attempt_dir = Path(spec.attempt_dir)
    code = "import no_such_module\n\ndef score(prompt, response, answer, row):\n    return 1.0\n"
    (attempt_dir / "mine.py").write_text(code)
    source = RewardFileSource(
        name="mine", path=str(attempt_dir / "mine.py"), sha256=hashlib.sha256(code.encode()).hexdigest()
    )
    resources = RewardResources(files={"rwf_mine": source})
    (attempt_dir / REWARDS_FILE).write_text(resources.model_dump_json())
    rewards = [{"name": "exact"}, {"name": "python", "options": {"file": "rwf_mine"}}]
    scored = spec.model_copy(update={"params": {"rewards": rewards}})
    (attempt_dir / "spec.json").write_text(scored.model_dump_json())

    exit_code = start("print('never')").wait(60)

    outcome = read_outcome(platform)
    assert (exit_code, outcome.outcome, outcome.cause) == (1, "failed", "reward_unusable")
    assert "python: The reward file 'mine' cannot be used: the code could not be loaded" in outcome.reason
    assert "no_such_module" in outcome.reason
    assert platform.log_lines("stdout") == []


@pytest.mark.faults
def test_an_export_needs_no_data(start: Any, platform: Any, spec: JobSpec) -> None:
    task = ExportTask(
        job_id="job_source", engine=Engine.VERL_SFT, step=1, checkpoint_path="/from", output_path="/to"
    )
    export = spec.model_copy(
        update={"engine": Engine.EXPORT, "gpus": 0, "export": task, "row_format": None, "train_data": None}
    )
    (Path(spec.attempt_dir) / "spec.json").write_text(export.model_dump_json())

    parent = start("print('written')", preparation_error="an export prepares nothing")

    assert parent.wait(20) == 0
    assert read_outcome(platform).outcome == "succeeded"
    (event,) = platform.of_kind("manifest")
    assert event.manifest["train_data"] is None


def test_a_killed_engine_is_a_crash_with_a_reason(start: Any, platform: Any) -> None:
    parent = start("import os; print('step 1', flush=True); os.kill(os.getpid(), 9)")

    exit_code = parent.wait(20)

    outcome = read_outcome(platform)
    assert exit_code == EXIT_CRASHED
    assert (outcome.outcome, outcome.exit_code) == ("crashed", -9)
    assert "SIGKILL" in outcome.reason
    assert platform.log_lines("stdout") == ["step 1"]


def test_a_stop_request_reaches_the_engine_which_leaves_at_a_checkpoint(start: Any, platform: Any) -> None:
    parent = start(STEPPING_ENGINE)
    wait_until(lambda: len(platform.of_kind("metrics")) > 3, 15, "the engine steps", pause_s=0.01)

    platform.is_stop_requested = True
    exit_code = parent.wait(20)

    assert exit_code == EXIT_STOPPED
    assert read_outcome(platform).outcome == "stopped"
    assert "checkpoint saved" in platform.log_lines("stdout")
    steps = [event.step for event in platform.of_kind("metrics")]
    assert steps == list(range(1, len(steps) + 1))
    assert platform.heartbeats[-1].step > 0


@pytest.mark.faults
def test_the_platform_may_go_away_during_a_run(start: Any, platform: Any) -> None:
    parent = start(STEPPING_ENGINE)
    wait_until(lambda: len(platform.of_kind("metrics")) > 3, 15, "the engine steps", pause_s=0.01)

    platform.stop()
    time.sleep(0.5)
    platform.start()
    time.sleep(0.5)
    platform.is_stop_requested = True
    exit_code = parent.wait(20)

    steps = [event.step for event in platform.of_kind("metrics")]
    assert exit_code == EXIT_STOPPED
    assert steps == list(range(1, len(steps) + 1))
    lines = [line for line in platform.log_lines("stdout") if line.startswith("step")]
    assert lines == [f"step {step}" for step in steps]


@pytest.mark.faults
def test_sigterm_ends_the_run_as_gracefully_as_it_can(start: Any, platform: Any) -> None:
    parent = start(STEPPING_ENGINE)
    wait_until(lambda: len(platform.of_kind("metrics")) > 3, 15, "the engine steps", pause_s=0.01)

    parent.send_signal(signal.SIGTERM)

    assert parent.wait(20) == EXIT_STOPPED
    assert read_outcome(platform).outcome == "stopped"


@pytest.mark.faults
def test_an_engine_that_does_not_listen_is_ended_at_the_second_sigterm(start: Any, platform: Any) -> None:
    parent = start("import time; print('deaf', flush=True); time.sleep(600)")
    wait_until(lambda: platform.log_lines("stdout") == ["deaf"], 15, "the engine prints", pause_s=0.01)

    parent.send_signal(signal.SIGTERM)
    time.sleep(0.5)
    parent.send_signal(signal.SIGTERM)

    assert parent.wait(20) == EXIT_CRASHED
    outcome = read_outcome(platform)
    assert (outcome.outcome, outcome.cause) == ("crashed", "terminated")


@pytest.mark.faults
def test_events_stay_on_disk_when_the_platform_does_not_come_back(
    start: Any, platform: Any, spec: JobSpec
) -> None:
    platform.stop()
    parent = start("print('hello')", drain_s=0.5)

    exit_code = parent.wait(30)

    reader = SpoolReader(spec.attempt_dir)
    kinds: list[str] = []
    while batch := reader.next_batch():
        kinds += [event.kind for event in batch.events]
        reader.acknowledge(batch.sequence + 1)
    assert exit_code == 0
    assert kinds[0] == "progress"
    assert "log" in kinds
    assert kinds[-1] == "outcome"


@pytest.mark.parametrize(
    "text", ["", "{", "{}", '{"version": 1, "job_id": "job_a", "surprise": true}'], ids=repr
)
def test_a_malformed_spec_is_refused(text: str, tmp_path: Path) -> None:
    path = tmp_path / "spec.json"
    path.write_text(text)

    done = subprocess.run(
        [sys.executable, "-m", "trellis_train.entrypoint", str(path)],
        capture_output=True,
        text=True,
        timeout=20,
    )

    assert done.returncode == EXIT_BAD_SPEC
    assert "bad spec" in done.stderr


def test_the_parent_starts_fast(tmp_path: Path) -> None:
    script = (
        "import sys; import trellis_train.entrypoint;"
        "print([n for n in ('torch', 'verl', 'vllm', 'ray', 'transformers', 'pyarrow') if n in sys.modules])"
    )
    started_at = time.monotonic()

    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=20, check=True
    )

    assert done.stdout.strip() == "[]"
    assert time.monotonic() - started_at < 5
