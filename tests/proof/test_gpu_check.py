"""The runs of `trellis gpu-check` on a CPU: all that does not depend on CUDA works."""

from pathlib import Path

import pytest
from trellis_cli.gpu_check.check import make_starter
from trellis_cli.gpu_check.check_results import Ground
from trellis_cli.gpu_check.platform import check_platform
from trellis_cli.gpu_check.probes import COLLECTIVE_PROBE, GENERATION_PROBE
from trellis_cli.gpu_check.training import RUNS, TrainingRun

pytestmark = [pytest.mark.training, pytest.mark.timeout(1200)]


@pytest.fixture(scope="module")
def ground(tmp_path_factory: pytest.TempPathFactory) -> Ground:
    ground = Ground(tmp_path_factory.mktemp("ground"), "cpu")
    row = make_starter(ground)
    assert row.state == "ok", row.detail
    return ground


def test_the_ranks_of_the_collective_probe_reach_each_other(tmp_path: Path) -> None:
    row = COLLECTIVE_PROBE.run(Ground(tmp_path, "cpu"))

    assert (row.state, row.detail) == ("ok", "all_gather and all_reduce over 2 ranks, backend gloo")


def test_the_generation_probe_gets_its_answers(ground: Ground) -> None:
    row = GENERATION_PROBE.run(ground)

    assert row.state == "ok", row.detail
    assert row.detail.startswith("3 answers of 16 tokens on 1 device(s), float32")


@pytest.mark.parametrize(
    "run",
    [run for run in RUNS if run.gpus == 1 and run.package is None],
    ids=lambda run: run.name,
)
def test_a_training_run_is_made_and_judged_ok(run: TrainingRun, ground: Ground) -> None:
    row = run.run(ground)

    assert row.state == "ok", row.detail
    assert "2 steps" in row.detail


def test_jobs_go_through_a_platform(ground: Ground) -> None:
    rows = {row.check: row for row in check_platform(ground)}

    assert [row.state for row in rows.values()] == ["ok", "ok", "skipped", "ok", "skipped"], rows
    assert rows["platform: start"].detail == "1 slot(s) on cpu"
    assert rows["platform: a job"].detail.startswith("2 steps of sft")
