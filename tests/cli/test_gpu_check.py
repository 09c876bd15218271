"""`trellis gpu-check`: probes and engines that stand in for the real ones, and the runs' configurations."""

import dataclasses
import importlib.util
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from trellis_cli.gpu_check import check, training
from trellis_cli.gpu_check.check import CHECKS, count_gpus, examine
from trellis_cli.gpu_check.check_results import Ground, Row
from trellis_cli.gpu_check.probes import Probe
from trellis_cli.gpu_check.process import run_limited
from trellis_cli.gpu_check.training import RUNS, STEPS, TrainingRun
from trellis_cli.main import app
from trellis_contracts.recipe import Engine
from trellis_contracts.spec import JobSpec
from trellis_data.samples.addition import write_sets
from trellis_data.samples.preferences import write_preferences
from trellis_train.engines.hydra_config import compose_config, compose_schema
from trellis_train.engines.sft import CONFIG_NAME as SFT_SCHEMA
from trellis_train.preference.settings import parse_overrides
from typer.testing import CliRunner

FINE = Probe("fine", "print('something before'); print('1.0')")
BROKEN = Probe("broken", "raise RuntimeError('the cellar is flooded')")
#: Its child has a session of its own, holds the pipes and would stay for minutes.
STUCK = Probe(
    "stuck",
    "import subprocess, sys, time\n"
    "sleep = [sys.executable, '-c', 'import time; time.sleep(300)', sys.argv[1]]\n"
    "subprocess.Popen(sleep, start_new_session=True)\n"
    "print('waiting for the other ranks', file=sys.stderr, flush=True)\n"
    "time.sleep(300)",
    limit_s=1.5,
)
FOUNDATION = Probe("PyTorch", "print('2.0 CUDA')")
#: In the place of an engine: writes the events that it is given, and ends as it is told.
ENGINE = """
import json, sys, time
from pathlib import Path
spec, story = json.loads(Path(sys.argv[1]).read_text()), json.loads(sys.argv[2])
attempt = Path(spec["attempt_dir"])
(attempt / "events").mkdir()
checkpoint = Path(spec["checkpoint_dir"], "global_step_2")
checkpoint.mkdir(parents=True)
if story["weights"]:
    (checkpoint / "model.safetensors").write_bytes(b"weights")
lines = [json.dumps(event).replace("CHECKPOINT", str(checkpoint)) for event in story["events"]]
(attempt / "events" / "trainer.1.jsonl").write_text("".join(line + "\\n" for line in lines))
if story["hangs"]:
    time.sleep(300)
sys.exit(story["exit_code"])
"""
SAVED = {"kind": "checkpoint", "step": 2, "path": "CHECKPOINT"}


def metrics(step: int, **changes: Any) -> dict[str, Any]:
    values = {"train/loss": 5.5, "train/grad_norm": 1.25} | {
        name.replace("__", "/"): value for name, value in changes.items()
    }
    return {"kind": "metrics", "step": step, "values": values}


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    """The starter's data; nothing that reads the model is run on it."""
    ground = Ground(tmp_path_factory.mktemp("ground"), "cuda")
    write_sets(ground.data, 0)
    write_preferences(ground.data, 0)
    return ground


@pytest.fixture
def has_bitsandbytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """As the lock for GPUs has it; on a CPU it is not installed."""
    find = importlib.util.find_spec

    def find_also(name: str) -> object:
        return object() if name == "bitsandbytes" else find(name)

    monkeypatch.setattr(importlib.util, "find_spec", find_also)


@pytest.fixture
def gpus(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Makes this a machine with so many GPUs."""
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    monkeypatch.setattr(check, "examine_tools", list)
    monkeypatch.setattr(check, "make_starter", lambda ground: Row("starter model", "ok", "made"))

    def have(count: int) -> None:
        monkeypatch.setattr(check, "gpu_names", lambda: ["NVIDIA Test"] * count)

    return have


@pytest.fixture
def tell(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, ground: Ground) -> Callable[..., Row]:
    """The row of a run whose engine tells these events and ends in this way."""

    def run(*events: dict[str, Any], exit_code: int = 0, hangs: bool = False, weights: bool = True) -> Row:
        story = {"events": events, "exit_code": exit_code, "hangs": hangs, "weights": weights}
        command = [sys.executable, "-c", ENGINE]
        monkeypatch.setattr(training, "command_alone", lambda spec: [*command, str(spec), json.dumps(story)])
        (tmp_path / "data").symlink_to(ground.data)
        chosen = dataclasses.replace(find_run("sft, full"), limit_s=1.5)
        return chosen.run(Ground(tmp_path, "cuda"))

    return run


def find_run(name: str) -> TrainingRun:
    return next(run for run in RUNS if run.name == name)


def states(rows: list[Row]) -> dict[str, str]:
    return {row.check: row.state for row in rows}


# -- probes ---------------------------------------------------------------------------------


def test_a_probe_that_prints_is_ok_and_one_that_raises_fails_with_its_reason(ground: Ground) -> None:
    fine, broken = FINE.run(ground), BROKEN.run(ground)

    assert (fine.state, fine.detail) == ("ok", "1.0")
    assert (broken.state, broken.detail) == ("failing", "RuntimeError: the cellar is flooded")


def test_a_probe_that_hangs_is_a_failing_row_and_leaves_no_process(tmp_path: Path) -> None:
    ground = Ground(tmp_path, "cuda")

    row = STUCK.run(ground)

    assert row.state == "failing"
    assert "timed out after 1.5 s" in row.detail
    assert "waiting for the other ranks" in row.detail
    assert row.seconds is not None
    assert row.seconds < 20
    assert list_processes(str(ground.model)) == []


def list_processes(argument: str) -> list[int]:
    """Living processes with that argument."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            arguments = path.read_bytes().split(b"\0")
        except OSError:
            continue
        if argument.encode() in arguments:
            found.append(int(path.parent.name))
    return found


def test_the_reason_of_a_failure_is_told_past_what_torchrun_adds() -> None:
    program = (
        "import sys; sys.exit('[rank1]: torch.DistBackendError: NCCL error\\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError:\\n=====')"
    )

    ended = run_limited([sys.executable, "-c", program], limit_s=30)

    assert ended.last_words == "torch.DistBackendError: NCCL error"


# -- which checks are made ------------------------------------------------------------------


def test_without_a_gpu_the_check_fails_and_names_what_it_would_have_run(
    ground: Ground, gpus: Callable[[int], None]
) -> None:
    gpus(0)

    rows = list(examine(ground, libraries=[FOUNDATION], checks=CHECKS))

    assert rows[0] == Row("driver", "failing", "nvidia-smi lists no GPU")
    assert {row.check for row in rows[2:]} == {each.name for each in CHECKS}
    assert {(row.state, row.detail) for row in rows[2:]} == {("skipped", "no GPU found")}


def test_nothing_is_trained_where_pytorch_cannot_use_the_gpu(
    ground: Ground, gpus: Callable[[int], None]
) -> None:
    gpus(1)
    blind = dataclasses.replace(FOUNDATION, program="assert False, 'torch sees no GPU'")

    rows = list(examine(ground, libraries=[blind, FINE], checks=[FINE]))

    assert [row.state for row in rows] == ["ok", "failing", "ok", "skipped"]
    assert rows[-1].detail == "PyTorch fails"


def test_what_takes_more_gpus_or_a_missing_package_is_skipped_with_the_reason(
    ground: Ground, gpus: Callable[[int], None]
) -> None:
    gpus(1)
    wide = dataclasses.replace(FINE, name="wide", gpus=2)
    special = dataclasses.replace(FINE, name="special", package="package_of_nobody")

    rows = {row.check: row for row in examine(ground, libraries=[FOUNDATION], checks=[FINE, wide, special])}

    assert (rows["fine"].state, rows["wide"].state, rows["special"].state) == ("ok", "skipped", "skipped")
    assert rows["wide"].detail == "needs 2 GPUs, found 1"
    assert rows["special"].detail == "the package package_of_nobody is not installed"


def test_what_takes_two_gpus_is_made_where_there_are_two(ground: Ground, gpus: Callable[[int], None]) -> None:
    gpus(2)
    wide = dataclasses.replace(FINE, name="wide", gpus=2)

    rows = list(examine(ground, libraries=[FOUNDATION], checks=[wide]))

    assert states(rows)["wide"] == "ok"


@pytest.mark.parametrize(("visible", "count"), [(None, 4), ("0,2", 2), ("", 0), ("-1", 0), ("GPU-1a2b", 1)])
def test_only_the_gpus_that_a_process_may_use_are_counted(
    monkeypatch: pytest.MonkeyPatch, visible: str | None, count: int
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    assert count_gpus(["NVIDIA Test"] * 4) == count


# -- the command ----------------------------------------------------------------------------


def test_the_command_prints_json_and_leaves_with_0_where_nothing_fails(
    monkeypatch: pytest.MonkeyPatch, gpus: Callable[[int], None]
) -> None:
    gpus(1)
    monkeypatch.setattr(check, "LIBRARIES", (FOUNDATION,))
    monkeypatch.setattr(check, "CHECKS", (FINE, dataclasses.replace(FINE, name="wide", gpus=2)))
    monkeypatch.setattr(
        check, "check_platform", lambda _ground: iter([Row("platform: start", "ok", "1 slot")])
    )

    done = CliRunner().invoke(app, ["gpu-check", "--json"])

    answer = json.loads(done.stdout)
    assert (done.exit_code, answer["passed"]) == (0, True)
    found = {row["check"]: row["state"] for row in answer["checks"]}
    expected = {"driver": "ok", "PyTorch": "ok", "starter model": "ok", "fine": "ok", "wide": "skipped"}
    assert found == {**expected, "platform: start": "ok"}


def test_the_command_leaves_with_1_where_something_fails(
    monkeypatch: pytest.MonkeyPatch, gpus: Callable[[int], None]
) -> None:
    gpus(1)
    monkeypatch.setattr(check, "LIBRARIES", (FOUNDATION,))
    monkeypatch.setattr(check, "CHECKS", (BROKEN,))
    monkeypatch.setattr(check, "check_platform", lambda _ground: iter(()))

    done = CliRunner().invoke(app, ["gpu-check"])

    assert done.exit_code == 1
    assert "the cellar is flooded" in done.stdout


def test_quick_leaves_it_at_the_libraries(
    monkeypatch: pytest.MonkeyPatch, gpus: Callable[[int], None]
) -> None:
    gpus(1)
    monkeypatch.setattr(check, "LIBRARIES", (FOUNDATION,))
    monkeypatch.setattr(check, "CHECKS", (BROKEN,))

    done = CliRunner().invoke(app, ["gpu-check", "--quick", "--json"])

    assert done.exit_code == 0
    assert [row["check"] for row in json.loads(done.stdout)["checks"]] == ["driver", "PyTorch"]


# -- judging a run --------------------------------------------------------------------------


def test_a_run_that_tells_every_step_and_leaves_a_checkpoint_is_ok(tell: Callable[..., Row]) -> None:
    row = tell(metrics(1), metrics(2, train__loss=5.25), SAVED)

    assert row.state == "ok"
    assert "2 steps of sft on verl-sft, train/loss 5.5 → 5.25" in row.detail


@pytest.mark.parametrize(
    ("events", "complaint"),
    [
        ([metrics(1), SAVED], "no metrics for step 2"),
        ([metrics(1), metrics(2, train__loss="NaN"), SAVED], "train/loss is nan at step 2"),
        ([metrics(1), metrics(2, train__grad_norm="Infinity"), SAVED], "train/grad_norm is inf at step 2"),
        ([metrics(1), {**metrics(2), "values": {"train/lr": 0.1}}, SAVED], "step 2 has no train/loss"),
        ([metrics(1, train__grad_norm=0), metrics(2, train__grad_norm=0), SAVED], "nothing was trained"),
        ([metrics(1), metrics(2)], "no checkpoint for step 2"),
    ],
)
def test_a_run_that_lacks_something_fails(
    tell: Callable[..., Row], events: list[dict[str, Any]], complaint: str
) -> None:
    row = tell(*events)

    assert row.state == "failing"
    assert complaint in row.detail


def test_an_empty_checkpoint_fails(tell: Callable[..., Row]) -> None:
    row = tell(metrics(1), metrics(2), SAVED, weights=False)

    assert row.state == "failing"
    assert "is empty" in row.detail


def test_a_run_that_fails_gives_the_reason_of_its_outcome_and_its_log(tell: Callable[..., Row]) -> None:
    log = {"kind": "log", "lines": ["torch.OutOfMemoryError: CUDA out of memory"]}
    outcome = {"kind": "outcome", "reason": "The GPU's memory was not enough."}

    row = tell(log, outcome, exit_code=1)

    reason, _, file = row.detail.partition("; see ")
    assert (row.state, reason) == ("failing", "The GPU's memory was not enough.")
    assert "OutOfMemoryError" in Path(file).read_text()


def test_a_run_that_hangs_is_ended_and_says_how_far_it_came(tell: Callable[..., Row]) -> None:
    started = time.monotonic()

    row = tell({"kind": "progress", "phase": "loading"}, hangs=True)

    assert row.state == "failing"
    assert "timed out after 1.5 s, killed (phase: loading, 0 steps reported)" in row.detail
    assert time.monotonic() - started < 30


def test_a_run_that_cannot_be_composed_fails_with_the_reason(ground: Ground) -> None:
    run = dataclasses.replace(find_run("sft, full"), name="odd", params={"batch_size": -1})

    row = run.run(ground)

    assert row.state == "failing"
    assert "invalid settings: " in row.detail
    assert "batch_size" in row.detail


# -- what the runs are ----------------------------------------------------------------------


def test_the_runs_cover_the_engines_in_full_and_with_adapters() -> None:
    names = [run.name for run in RUNS]

    assert names == [
        "sft, full",
        "sft, LoRA",
        "dpo, full",
        "dpo, QLoRA",
        "grpo, full",
        "grpo, LoRA",
        "grpo, two GPUs",
    ]


@pytest.mark.usefixtures("has_bitsandbytes")
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_every_run_composes_for_cuda_as_its_engine_reads_it(run: TrainingRun, ground: Ground) -> None:
    spec = run.compose(ground)

    assert (spec.platform, spec.gpus) == ("cuda", run.gpus)
    assert read_steps(spec) == STEPS


def read_steps(spec: JobSpec) -> int:
    """The length of a run, out of the configuration as its engine reads it."""
    if spec.engine is Engine.TRL:
        steps = parse_overrides(spec.engine_overrides)["max_steps"]
    elif spec.engine is Engine.VERL_SFT:
        steps = compose_schema(SFT_SCHEMA, spec.engine_overrides).trainer.total_training_steps
    else:
        steps = compose_config(spec).trainer.total_training_steps
    return int(steps)


@pytest.mark.usefixtures("has_bitsandbytes")
def test_the_base_of_qlora_is_held_in_four_bits(ground: Ground) -> None:
    settings = parse_overrides(find_run("dpo, QLoRA").compose(ground).engine_overrides)

    assert settings["load_in_4bit"] is True
    assert settings["lora_r"] > 0


def test_qlora_is_skipped_where_bitsandbytes_is_missing(
    ground: Ground, gpus: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    gpus(1)
    run = find_run("dpo, QLoRA")
    monkeypatch.setattr(importlib.util, "find_spec", lambda _name: None)

    rows = list(examine(ground, libraries=[FOUNDATION], checks=[run]))

    assert rows[-1] == Row(run.name, "skipped", "the package bitsandbytes is not installed")
