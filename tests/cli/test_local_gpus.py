"""Runs of this machine on several GPUs: the option, the variable and the setting, and what is there."""

from collections.abc import Callable
from pathlib import Path

import pytest
from trellis_cli import agent_train, linksearch
from trellis_cli.errors import Problem
from trellis_cli.linksearch_settings import read_settings
from trellis_cli.local_job import require_gpus
from trellis_cli.local_run import LocalOutcome
from trellis_cli.main import app
from trellis_contracts.spec import JobSpec
from typer.testing import CliRunner

RUNNER = CliRunner()
ROW = '{"messages": [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]}\n'


@pytest.fixture
def devices(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Makes this a machine with the GPUs that are named."""

    def have(visible: str) -> None:
        monkeypatch.setenv("TRELLIS_PLATFORM", "cuda")
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)

    return have


@pytest.mark.parametrize(
    ("options", "variable", "count"),
    [
        (["--gpus", "4"], "2", 4),
        ([], "2", 2),
        ([], None, 3),
    ],
)
def test_a_stage_runs_on_the_gpus_of_option_variable_or_settings(
    options: list[str],
    variable: str | None,
    count: int,
    tmp_path: Path,
    devices: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    devices("0,1,2,3")
    if variable is not None:
        monkeypatch.setenv("GPUS", variable)
    begun: list[JobSpec] = []

    def run(spec: JobSpec, **_: object) -> LocalOutcome:
        begun.append(spec)
        return LocalOutcome(folder=spec.attempt_dir, outcome="succeeded")

    monkeypatch.setattr(agent_train, "run_local", run)
    for name, text in (("settings.yaml", "gpus: 3"), ("config.json", "{}"), ("rows.jsonl", ROW * 240)):
        (tmp_path / name).write_text(text)
    command = ["agent", "train", "sft", "--data", str(tmp_path / "rows.jsonl"), "--base-model", str(tmp_path)]
    command += ["--config", str(tmp_path / "settings.yaml"), "--output", str(tmp_path / "out")]
    sizes = ["--set", "batch_size=2", "--set", "gradient_accumulation=4", "--set", "validation_rows=0"]

    result = RUNNER.invoke(app, [*command, *options, *sizes])

    assert result.exit_code == 0, f"{result.output} {result.exception}"
    assert begun[0].gpus == count


def test_link_search_runs_on_several_gpus(
    tmp_path: Path, devices: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    devices("0,1")
    monkeypatch.setattr(linksearch, "_ask", lambda *_, **__: {})
    (tmp_path / "config.json").write_text("{}")
    environment = {"GPUS": "2", "MODEL_NAME": str(tmp_path), "OUTPUT_DIR": str(tmp_path / "run")}

    job = linksearch.make_job(read_settings({}, environment=environment))

    assert job.gpus == 2
    with pytest.raises(Problem, match="4 GPUs were asked for, but 2 GPUs can be used here"):
        linksearch.make_job(read_settings({"gpus": 4}, environment=environment))


def test_no_more_gpus_than_the_machine_has(
    devices: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    devices("3,GPU-1a2b")
    assert require_gpus(2) == 2
    with pytest.raises(Problem, match="3 GPUs were asked for, but 2 GPUs can be used here"):
        require_gpus(3)
    monkeypatch.setenv("TRELLIS_PLATFORM", "cpu")
    with pytest.raises(Problem, match="CPU cores"):
        require_gpus(10_000)
