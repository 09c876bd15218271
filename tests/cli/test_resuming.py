"""Runs of this machine that go on from a checkpoint, and folders that hold one already."""

import json
from pathlib import Path

import pytest
from click.testing import Result
from trellis_cli import agent_train, tune
from trellis_cli.errors import Problem
from trellis_cli.local_run import LocalOutcome
from trellis_cli.main import app
from trellis_cli.resuming import choose_checkpoint, find_newest
from trellis_contracts.spec import JobSpec
from typer.testing import CliRunner

RUNNER = CliRunner()
CHAT = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]
PAIR = {"prompt": "1+1?", "chosen": "2", "rejected": "3"}
PROMPT = {"data_source": "t", "prompt": CHAT[:1], "reward_model": {"ground_truth": "2"}}
ROWS = {"sft": {"messages": CHAT}, "dpo": PAIR, "grpo": PROMPT}
#: An empty archive, as which the files of torch begin.
ZIP = b"PK\x05\x06" + bytes(18)


@pytest.fixture
def specs(monkeypatch: pytest.MonkeyPatch) -> list[JobSpec]:
    """The runs that would have begun."""
    begun: list[JobSpec] = []

    def run(spec: JobSpec, **_: object) -> LocalOutcome:
        begun.append(spec)
        return LocalOutcome(folder=str(Path(spec.attempt_dir).parent), outcome="succeeded")

    monkeypatch.setenv("TRELLIS_PLATFORM", "cpu")
    monkeypatch.setattr(agent_train, "run_local", run)
    monkeypatch.setattr(tune, "run_local", run)
    return begun


def save_trl(output: Path, step: int) -> Path:
    folder = output / f"checkpoints/global_step_{step}"
    (folder / "huggingface").mkdir(parents=True)
    for name in ("trainer_state.json", "huggingface/config.json", "huggingface/model.safetensors"):
        (folder / name).write_text("{}")
    for name in ("optimizer.pt", "scheduler.pt"):
        (folder / name).write_bytes(ZIP)
    return folder


def save_ppo(output: Path, step: int) -> Path:
    folder = output / f"checkpoints/global_step_{step}"
    (folder / "actor").mkdir(parents=True)
    for name in ("actor/model_world_size_1_rank_0.pt", "data.pt"):
        (folder / name).write_bytes(ZIP)
    return folder


def save_retrieval(output: Path, step: int) -> Path:
    folder = output / f"checkpoints/global_step_{step}"
    (folder / "huggingface").mkdir(parents=True)
    (folder / "huggingface/model.safetensors").touch()
    (folder / "trainer_state.pt").write_bytes(ZIP)
    return folder


def note_attempt(output: Path, number: int, *saved: int, start: Path | None = None) -> None:
    """What an attempt leaves: its spec, and an event for each checkpoint."""
    attempt = output / f"attempt-{number}"
    (attempt / "events").mkdir(parents=True)
    checkpoints = output / "checkpoints"
    spec = {"resume_from": str(start) if start else None, "checkpoint_dir": str(checkpoints)}
    (attempt / "spec.json").write_text(json.dumps(spec))
    events = [
        {"kind": "checkpoint", "step": step, "path": f"/elsewhere/global_step_{step}"} for step in saved
    ]
    whole = "".join(json.dumps(event) + "\n" for event in events)
    (attempt / "events/trainer.0.jsonl").write_text(whole + '{"kind": "checkpoint", "pa')


def train(folder: Path, stage: str, *options: str) -> Result:
    model, data = folder / "model", folder / "rows.jsonl"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text("{}")
    data.write_text((json.dumps(ROWS[stage]) + "\n") * 200)
    command = ["agent", "train", stage, "--data", str(data), "--output", str(folder / "out")]
    return RUNNER.invoke(app, [*command, "--base-model", str(model), *options])


def test_a_stage_goes_on_from_its_last_checkpoint_and_does_not_begin_beside_it(
    tmp_path: Path, specs: list[JobSpec]
) -> None:
    save_trl(tmp_path / "out", 4)
    last = save_trl(tmp_path / "out", 10)

    second = train(tmp_path, "sft")
    resumed = train(tmp_path, "sft", "--resume")

    assert isinstance(second.exception, Problem)
    assert "the last at step 10" in second.exception.message
    assert "--resume" in (second.exception.hint or "")
    assert resumed.exit_code == 0, resumed.output
    assert [spec.resume_from for spec in specs] == [str(last)]
    assert f"resume_from_checkpoint={last}" in specs[0].engine_overrides


def test_a_stage_of_reinforcement_goes_on_without_measuring_its_baseline_again(
    tmp_path: Path, specs: list[JobSpec]
) -> None:
    chosen = save_ppo(tmp_path / "elsewhere", 3)
    options = ["--resume-from-checkpoint", str(chosen), "--set", "validate_before=true"]

    resumed = train(tmp_path, "grpo", *options, "--set", "validation_rows=8")

    assert resumed.exit_code == 0, resumed.output
    assert (specs[0].resume_from, specs[0].params["validate_before"]) == (str(chosen), False)


def test_a_resumed_stage_learns_from_the_pairs_that_were_sampled(
    tmp_path: Path, specs: list[JobSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    def sample(*_: object) -> dict[str, int]:
        raise AssertionError("sampled again")

    monkeypatch.setattr(agent_train, "run_module", sample)
    save_trl(tmp_path / "out", 4)
    (tmp_path / "out/pairs.jsonl").write_text((json.dumps(PAIR) + "\n") * 64)

    resumed = train(tmp_path, "dpo", "--num-samples", "4", "--resume")

    assert resumed.exit_code == 0, resumed.output
    assert specs[0].train_data is not None
    assert specs[0].train_data.row_count == 64


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--resume"], "contains no checkpoint to resume from"),
        (["--resume", "--resume-from-checkpoint", "x"], "mutually exclusive"),
        (["--resume-from-checkpoint", "nowhere/global_step_3"], "Checkpoint not found"),
    ],
)
def test_what_cannot_be_resumed_from_is_told(
    options: list[str], said: str, tmp_path: Path, specs: list[JobSpec]
) -> None:
    result = train(tmp_path, "sft", *options)

    assert said in str(result.exception)
    assert specs == []


@pytest.mark.parametrize(
    ("recipe", "save", "cut"),
    [
        ("agent_dpo", save_trl, "optimizer.pt"),
        ("agent_grpo", save_ppo, "data.pt"),
        ("agent_retrieval", save_retrieval, "trainer_state.pt"),
    ],
)
def test_a_checkpoint_that_was_cut_off_is_refused(recipe: str, save, cut: str, tmp_path: Path) -> None:
    folder = save(tmp_path, 4)
    assert choose_checkpoint(tmp_path, recipe, resume=True, resume_from=None) == folder

    (folder / cut).write_bytes(b"PK")
    with pytest.raises(Problem, match=f"{cut} is truncated"):
        choose_checkpoint(tmp_path, recipe, resume=True, resume_from=None)
    (folder / cut).unlink()
    with pytest.raises(Problem, match=f"no {cut}"):
        choose_checkpoint(tmp_path, recipe, resume=True, resume_from=None)


def test_the_newest_checkpoint_is_that_of_the_last_attempt(tmp_path: Path) -> None:
    early, later, last = (save_trl(tmp_path, step) for step in (5, 7, 10))
    assert find_newest(tmp_path) == last
    note_attempt(tmp_path, 9, 5, 10)
    assert find_newest(tmp_path) == last

    note_attempt(tmp_path, 10, start=early)  # which ended before it saved anything
    assert find_newest(tmp_path) == early
    note_attempt(tmp_path, 11, 6, 7, start=early)
    assert find_newest(tmp_path) == later


def test_a_workflow_goes_on_from_its_last_checkpoint(
    tmp_path: Path, specs: list[JobSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    rows, run = tmp_path / "rows.jsonl", tmp_path / "run"
    rows.write_text('{"question": "1+1?", "answer": "2"}\n' * 64)
    (tmp_path / "workflow.py").write_text("async def workflow(task, model):\n    return 1.0\n")
    plan = {
        "folder": str(run),
        "recipe": "tune",
        "model": str(tmp_path),
        "train": {
            "path": str(rows),
            "columns": {"prompt": "question", "answer": "answer"},
            "format": "prompt-answer",
        },
        "validation": None,
        "params": {"validation_rows": 0},
        "overrides": {},
        "environments": {},
        "auxiliary_models": {},
        "seed": 1,
        "gpus": 1,
        "nodes": 1,
        "has_event_files": False,
    }
    monkeypatch.setattr(tune, "read_plan", lambda _: plan)
    last = save_ppo(run, 8)
    command = ["tune", "run", "tune.yaml", str(tmp_path / "workflow.py")]

    second = RUNNER.invoke(app, command)
    resumed = RUNNER.invoke(app, [*command, "--resume"])

    assert "already contains checkpoints" in str(second.exception)
    assert resumed.exit_code == 0, resumed.output
    assert [spec.resume_from for spec in specs] == [str(last)]
