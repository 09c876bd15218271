"""Jobs in the foreground, without the platform: real runs of the engine on the starter model."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from trellis_cli.errors import Problem
from trellis_cli.event_files import EventFiles, Monitor, open_writer
from trellis_cli.local_job import LocalJob, LocalRows, write_spec
from trellis_cli.local_run import (
    LOG_FILE,
    LocalOutcome,
    _count_sessions,
    describe_failed_sessions,
    require_success,
    run_local,
)
from trellis_contracts.recipe import DataFormat
from trellis_testing.waiting import wait_until

STEPS = 40
PROGRAM = """
import json, sys
from pathlib import Path
from trellis_cli.local_run import run_local
from trellis_contracts.spec import JobSpec
print(json.dumps(run_local(JobSpec.model_validate_json(Path(sys.argv[1]).read_text())).as_dict()))
"""


@pytest.fixture(scope="module")
def starter(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starter")
    command = [sys.executable, "-m", "trellis_train.starter", "--seed", "0"]
    subprocess.run(
        [*command, "--model", str(folder / "model"), "--data", str(folder / "data")],
        check=True,
        capture_output=True,
        env={**os.environ, "TOKENIZERS_PARALLELISM": "false"},
    )
    return folder


def make_job(starter: Path, folder: Path, **choices: object) -> LocalJob:
    params = {"validate_every": 0, "validation_rows": 0, "save_every": 0, "total_steps": STEPS}
    rows = LocalRows(starter / "data" / "sft.jsonl", DataFormat.PROMPT_ANSWER)
    job = {"params": params, "platform": "cpu", **choices}
    return LocalJob(folder, "sft", str(starter / "model"), rows, **job)  # type: ignore[arg-type]


def test_failed_sessions_of_a_run_that_succeeded_are_told(tmp_path: Path) -> None:
    lines = [
        {"step": 1, "split": "train", "sessions": 28, "failed": {"KeyError": 12}, "first": "KeyError: 'a'"},
        {"step": 2, "split": "train", "sessions": 28, "failed": {"KeyError": 6, "timeout": 2}, "first": "x"},
    ]
    file, outcome = tmp_path / "sessions.jsonl", LocalOutcome(str(tmp_path), outcome="succeeded")
    assert describe_failed_sessions(outcome) is None
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))

    _count_sessions(file, outcome)

    told = describe_failed_sessions(outcome) or ""
    assert told.startswith(
        "20 of 56 sessions failed and count as reward 0: 18 KeyError, 2 timeout. First: KeyE"
    )
    assert outcome.as_dict()["failed_sessions"] == {"KeyError": 18, "timeout": 2}


#: Its mistake shows only after a reply, where it cannot be told from a reply's doing before the run.
MISTAKEN = """
from trellis import TunableChatModel


async def workflow(task: dict, model: TunableChatModel) -> float:
    reply = await model(task["messages"])
    return float(reply.text == task["anser"])
"""
TUNE = """
checkpoint_root_dir: runs
model: {model_path: MODEL, max_prompt_tokens: 64, max_response_tokens: 32}
algorithm: {repeat_times: 4}
buffer: {batch_size: 4, total_steps: 2, explorer_input: {taskset: {path: tasks.jsonl}}}
"""


@pytest.mark.training
@pytest.mark.timeout(900)
def test_a_workflow_whose_sessions_fail_says_why(starter: Path, tmp_path: Path) -> None:
    (tmp_path / "mistaken.py").write_text(MISTAKEN)
    (tmp_path / "tune.yaml").write_text(TUNE.replace("MODEL", str(starter / "model")))
    tasks = [{"question": f"{number}+4=", "answer": str(number + 4)} for number in range(8)]
    (tmp_path / "tasks.jsonl").write_text("".join(json.dumps(task) + "\n" for task in tasks))

    command = [sys.executable, "-m", "trellis_cli", "tune", "run", "tune.yaml", "mistaken.py"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    assert done.returncode == 1
    assert (
        "the run failed: The workflow fails: 16 of the 16 sessions of step 1 failed: 16 KeyError. "
        "First: KeyError: 'anser' (mistaken.py, line 7)" in done.stderr
    )
    assert 'File "mistaken.py", line 7, in workflow' in done.stderr
    assert "response_mask" not in done.stderr


@pytest.mark.training
def test_ctrl_c_leaves_at_a_checkpoint_from_which_the_run_goes_on(starter: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    spec = write_spec(make_job(starter, folder))
    metrics = folder / "metrics.jsonl"

    command = [sys.executable, "-c", PROGRAM, str(Path(spec.attempt_dir) / "spec.json")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        wait_until(lambda: metrics.exists() and metrics.read_text() != "", 120, "the first step is done")
        process.send_signal(signal.SIGINT)
        answer, told = process.communicate(timeout=120)
    stopped = json.loads(answer)
    step = stopped["step"]
    resumed = run_local(write_spec(make_job(starter, folder, resume_from=Path(stopped["checkpoint"]))))

    assert stopped["outcome"] == "stopped"
    assert 1 <= step < STEPS
    assert "Ctrl-C again" in told
    assert (resumed.outcome, resumed.step, resumed.total_steps) == ("succeeded", STEPS, STEPS)
    rows = [json.loads(line) for line in metrics.read_text().splitlines()]
    # A step whose checkpoint is saved has another line, with the seconds that took.
    assert [row["step"] for row in rows if "train/loss" in row] == list(range(1, STEPS + 1))
    measured = [(row["step"], name) for row in rows for name in row if name not in ("attempt", "step")]
    assert len(measured) == len(set(measured))
    assert Path(resumed.hf_path or "", "model.safetensors").is_file()


@pytest.mark.training
def test_a_run_whose_data_do_not_suit_it_says_so_and_shows_its_log(starter: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"prompt": "1+1=", "answer": null}\n' * 200)
    job = make_job(starter, tmp_path / "run")
    spec = write_spec(
        LocalJob(job.folder, job.recipe, job.model, LocalRows(rows, DataFormat.PROMPT_ANSWER), platform="cpu")
    )

    outcome = run_local(spec)

    assert outcome.outcome == "failed"
    with pytest.raises(Problem, match="Row 1 of dataset rows") as raised:
        require_success(outcome)
    assert "Full log: " in str(raised.value.hint)
    assert str(raised.value.hint).count("Row 1 of dataset rows") <= 1, "the reason is not repeated"


def test_all_that_is_wrong_with_the_choices_is_said_at_once(starter: Path, tmp_path: Path) -> None:
    job = make_job(starter, tmp_path / "run", params={"learning_rate": -1, "stepz": 3})

    with pytest.raises(Problem, match="stepz") as raised:
        write_spec(job)

    assert "learning_rate" in raised.value.message


def test_a_file_that_holds_no_rows_is_a_clear_problem(starter: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text("[1, 2\n")
    job = LocalJob(tmp_path / "run", "sft", "m", LocalRows(rows, DataFormat.MESSAGES), platform="cpu")

    with pytest.raises(Problem, match="cannot be read as rows"):
        write_spec(job)


@pytest.mark.training
def test_a_run_ends_when_its_terminal_is_gone(starter: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    spec = write_spec(make_job(starter, folder))
    command = [sys.executable, "-c", PROGRAM, str(Path(spec.attempt_dir) / "spec.json")]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        wait_until(lambda: any((Path(spec.attempt_dir) / "events").glob("*")), 60, "the run has begun")
        process.kill()

    mark = str(Path(spec.attempt_dir) / "spec.json").encode()
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and list_processes(mark):
        time.sleep(0.2)
    assert list_processes(mark) == []


def list_processes(mark: bytes) -> list[str]:
    """Processes that name the specification on their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            if mark in line:
                found.append(entry.name)
    return found


def test_metrics_are_written_as_event_files_that_tensorboard_reads(tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    writer = EventFiles(tmp_path / "tensorboard")
    writer.write(1, {"train/loss": 2.0, "bad": float("nan")})
    writer.write(2, {"train/loss": 1.5})
    writer.close()

    read = EventAccumulator(str(tmp_path / "tensorboard"))
    read.Reload()
    assert read.Tags()["scalars"] == ["train/loss"]
    assert [(each.step, each.value) for each in read.Scalars("train/loss")] == [(1, 2.0), (2, 1.5)]


def test_metrics_are_kept_for_wandb_where_there_is_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in os.environ if name.startswith("WANDB_")]:
        monkeypatch.delenv(name)

    ids = []
    for step, is_resumed in ((1, False), (2, True), (1, False)):
        writer = open_writer(Monitor.WANDB, tmp_path, {"learning_rate": 0.5}, is_resumed=is_resumed)
        assert writer is not None
        writer.write(step, {"train/loss": 2.0, "bad": float("nan")})
        writer.close()
        ids.append((tmp_path / "wandb-run").read_text())

    kept = list((tmp_path / "wandb").glob("offline-run-*/*.wandb"))
    stored = b"".join(file.read_bytes() for file in kept)
    assert ids[0] == ids[1], "a resumed run goes on with its W&B run"
    assert ids[2] != ids[0], "another run in the folder would give steps that W&B has already"
    assert {file.stem for file in kept} == {f"run-{ids[0]}", f"run-{ids[2]}"}
    assert b"train/loss" in stored
    assert b"learning_rate" in stored
    assert socket.gethostname().encode() not in stored
    assert "wandb sync" in capsys.readouterr().err


def test_a_key_of_wandb_is_written_nowhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = "0123456789abcdef0123456789abcdef01234567"
    monkeypatch.setenv("WANDB_API_KEY", key)
    monkeypatch.setenv("WANDB_MODE", "offline")

    writer = open_writer(Monitor.WANDB, tmp_path)
    assert writer is not None
    writer.close()

    written = b"".join(file.read_bytes() for file in tmp_path.rglob("*") if file.is_file())
    assert key.encode() not in written


def test_a_failure_of_a_known_cause_comes_with_advice(tmp_path: Path) -> None:
    (tmp_path / LOG_FILE).write_text("torch.OutOfMemoryError\n")
    outcome = LocalOutcome(
        str(tmp_path), outcome="failed", reason="out of memory", cause="cuda_out_of_memory"
    )

    with pytest.raises(Problem) as failure:
        require_success(outcome)

    assert str(failure.value.hint).startswith("The GPU ran out of memory. Lower the micro-batch size")
    assert "torch.OutOfMemoryError" in str(failure.value.hint)
