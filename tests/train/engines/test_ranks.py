"""Several processes for one run: which failure counts, and how they say that they were stopped."""

import subprocess
import sys
from pathlib import Path

import pytest
from trellis_contracts.recipe import DataFormat
from trellis_contracts.spec import EXIT_STOPPED, DataSource, JobSpec, ModelSource
from trellis_train.supervise.failure_causes import judge

# Two ranks import torch and verl.
pytestmark = pytest.mark.slow

#: An engine whose ranks do as the test wants.
ENGINE = """
import atexit, os, sys, time
from pathlib import Path
from trellis_contracts.events import ProgressEvent
from trellis_train.engines.ranks import FAILED_FILE, run_ranks
from trellis_train.hooks.clock import now

# Rank 1 stays until rank 0 has said its part: torchrun ends the others once it sees one that failed.
PEER_ENDED = Path("peer_ended")

def wait_for_the_peer():
    while not PEER_ENDED.exists():
        time.sleep(0.01)

def run_rank(spec, spool):
    if spool is not None:
        spool.write(ProgressEvent(time=now(), phase="loading", step=0))
    if spec.name == "stopped":
        return True
    if os.environ["RANK"] == "1":
        atexit.register(wait_for_the_peer)
        raise ValueError("the rows of rank 1 are empty")
    while not (Path(spec.attempt_dir) / FAILED_FILE).exists():
        time.sleep(0.01)
    atexit.register(PEER_ENDED.touch)
    raise RuntimeError("Connection closed by peer [127.0.0.1]:1234 (gloo)")

sys.exit(run_ranks(sys.argv[1:], "tiny_engine", run_rank))
"""


def run_engine(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    (folder / "tiny_engine.py").write_text(ENGINE)
    spec = JobSpec(
        job_id="job_ranks",
        attempt=1,
        name=name,
        recipe="sft",
        engine="verl-sft",
        platform="cpu",
        gpus=2,
        seed=0,
        params={},
        engine_overrides=[],
        env={},
        model=ModelSource(model_id="model", path=str(folder)),
        row_format=DataFormat.MESSAGES,
        train_data=DataSource(
            dataset_id="rows", paths=[str(folder)], format=DataFormat.MESSAGES, sha256="0", row_count=1
        ),
        attempt_dir=str(folder),
        checkpoint_dir=str(folder / "checkpoints"),
        ingest_url="http://127.0.0.1:9",
    )
    path = folder / "spec.json"
    path.write_text(spec.model_dump_json())
    command = [sys.executable, "-m", "tiny_engine", str(path)]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_the_failure_that_came_first_is_the_cause(tmp_path: Path) -> None:
    done = run_engine(tmp_path, "fails")

    verdict = judge(done.returncode, done.stderr.splitlines())
    assert (verdict.outcome, verdict.reason) == ("failed", "ValueError: the rows of rank 1 are empty")
    assert "Rank 0 exits because another rank failed" in done.stderr


def test_a_stop_of_all_ranks_is_one_of_the_run_and_only_the_first_reports(tmp_path: Path) -> None:
    done = run_engine(tmp_path, "stopped")

    assert done.returncode == EXIT_STOPPED, done.stderr
    (events,) = (tmp_path / "events").iterdir()
    assert len(events.read_text().splitlines()) == 1
