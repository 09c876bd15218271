"""`trellis agent train`: what its options make of a run, without running it."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from trellis_cli import agent_train
from trellis_cli.errors import Problem
from trellis_cli.local_run import LocalOutcome
from trellis_cli.main import app
from trellis_contracts.spec import JobSpec
from trellis_testing.stand_in_hub import StandInHub
from trellis_testing.stand_in_modelscope import StandInModelScope
from typer.testing import CliRunner

RUNNER = CliRunner()
CHAT = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]
ROWS = {
    "sft": {"messages": CHAT},
    "dpo": {"prompt": "1+1?", "chosen": "2", "rejected": "3"},
    "ppo": {"data_source": "t", "prompt": CHAT[:1], "reward_model": {"ground_truth": "2"}},
    "grpo": {"data_source": "t", "prompt": CHAT[:1], "reward_model": {"ground_truth": "2"}},
}


@pytest.fixture
def specs(monkeypatch: pytest.MonkeyPatch) -> list[JobSpec]:
    """The runs that would have begun."""
    begun: list[JobSpec] = []

    def run(spec: JobSpec, **_: object) -> LocalOutcome:
        begun.append(spec)
        return LocalOutcome(folder=spec.attempt_dir, outcome="succeeded", step=3, metrics={"loss": 0.5})

    monkeypatch.setenv("TRELLIS_PLATFORM", "cpu")
    monkeypatch.setattr(agent_train, "run_local", run)
    return begun


def train(folder: Path, stage: str, *options: str) -> Any:
    model = folder / "model"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text("{}")
    data = folder / "rows.jsonl"
    data.write_text("".join(json.dumps(ROWS[stage]) + "\n" for _ in range(200)))
    command = ["agent", "train", stage, "--data", str(data), "--output", str(folder / "out")]
    base = [] if "--base-model" in options else ["--base-model", str(model)]
    return RUNNER.invoke(app, [*command, *base, *options])


def parameters(specs: list[JobSpec], *names: str) -> tuple:
    return tuple(specs[-1].params[name] for name in names)


def test_options_of_the_line_land_in_the_run(tmp_path: Path, specs: list[JobSpec]) -> None:
    weights = "tool_selection=.6,timing_decision=.4"

    result = train(tmp_path, "sft", "--epochs", "2", "--task-weights", weights, "--num-samples", "64")

    assert result.exit_code == 0, result.output
    assert parameters(specs, "epochs", "total_steps", "max_samples") == (2, None, 64)
    assert parameters(specs, "weight_tool_selection", "weight_timing_decision") == (0.6, 0.4)
    assert parameters(specs, "weight_multi_step_planning", "weight_tool_retrieval") == (0, 0)
    assert any(line == "num_train_epochs=2.0" for line in specs[-1].engine_overrides)


@pytest.mark.parametrize(
    ("stage", "option", "value", "parameter"),
    [
        ("dpo", "--beta", "0.3", ("beta", 0.3)),
        ("grpo", "--beta", "0.3", ("kl_coefficient", 0.3)),
        ("ppo", "--beta", "0.3", ("kl_reward_coefficient", 0.3)),
        ("grpo", "--num-samples", "8", ("group_size", 8)),
        ("dpo", "--set", "loss_type=hinge", ("loss_type", "hinge")),
        ("sft", "--set", "lora_dropout=0.2", ("lora_dropout", 0.2)),
    ],
)
def test_an_option_is_the_parameter_of_its_stage(
    stage: str, option: str, value: str, parameter: tuple, tmp_path: Path, specs: list[JobSpec]
) -> None:
    result = train(tmp_path, stage, option, value, "--set", "validation_rows=8")

    assert result.exit_code == 0, result.output
    assert specs[-1].recipe == f"agent_{stage}"
    assert parameters(specs, parameter[0]) == (parameter[1],)


def test_no_more_rows_are_measured_than_validation_rows(tmp_path: Path, specs: list[JobSpec]) -> None:
    dev = tmp_path / "dev.jsonl"
    dev.write_text("".join(json.dumps(ROWS["sft"]) + "\n" for _ in range(50)))

    def measured(setting: str) -> int | None:
        result = train(tmp_path, "sft", "--dev-data", str(dev), "--set", setting)
        assert result.exit_code == 0, result.output
        rows = specs[-1].validation_data
        return None if rows is None else pq.read_metadata(rows.paths[0]).num_rows

    assert [measured(f"validation_rows={count}") for count in (4, 50, 80, 0)] == [4, 50, 50, None]


def test_rows_to_measure_on_have_a_path_or_a_name(
    tmp_path: Path, specs: list[JobSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = tmp_path / "generated"
    (data / "sft").mkdir(parents=True)
    (data / "agent_tools.jsonl").write_text("{}\n")
    monkeypatch.setenv("TRELLIS_AGENT_DATA", str(data))

    def format_dialogs(_data: Path, folder: Path) -> None:
        (folder / "sft").mkdir(parents=True, exist_ok=True)
        (folder / "sft" / "dev.jsonl").write_text("".join(json.dumps(ROWS["sft"]) + "\n" for _ in range(6)))

    monkeypatch.setattr(agent_train, "_format", format_dialogs)
    named = train(tmp_path, "sft", "--dev-data", "agent_sft:dev")
    missing = train(tmp_path, "sft", "--dev-data", "nowhere.jsonl")

    assert named.exit_code == 0, named.output
    assert specs[-1].validation_data is not None
    assert specs[-1].validation_data.row_count == 6
    assert "no such file or folder: nowhere.jsonl" in str(missing.exception)


def test_the_line_goes_before_the_file_and_the_file_before_the_preset(
    tmp_path: Path, specs: list[JobSpec]
) -> None:
    config = tmp_path / "settings.yaml"
    config.write_text("sft: {epochs: 5, learning_rate: 1.0e-4, lora: {r: 4}}\n")

    result = train(tmp_path, "sft", "--config", str(config), "--epochs", "2")

    assert result.exit_code == 0, result.output
    assert parameters(specs, "epochs", "learning_rate", "lora_rank", "batch_size") == (2, 1e-4, 4, 16)


@pytest.mark.parametrize(
    ("stage", "options", "said"),
    [
        ("sft", ["--beta", "1"], "--beta only works with dpo, grpo, ppo, not sft"),
        ("dpo", ["--task-weights", "tool_selection=1"], "--task-weights only works with sft"),
        ("sft", ["--task-weights", "flying=1"], "kinds of tasks"),
        ("sft", ["--set", "lora_rnk=1"], "did you mean 'lora_rank'"),
        ("sft", ["--set", "lora_rank"], "takes NAME=VALUE"),
        ("sft", ["--preset", "development"], "which is not installed: pip install 'bitsandbytes"),
        ("sft", ["--preset", "huge"], "no preset 'huge'"),
        ("sft", ["--base-model", "./nowhere"], "is neither a model folder"),
    ],
)
def test_what_cannot_run_is_told_before_it_begins(
    stage: str, options: list[str], said: str, tmp_path: Path, specs: list[JobSpec]
) -> None:
    result = train(tmp_path, stage, *options)

    told = " ".join(f"{result.output} {result.exception}".split())
    assert result.exit_code != 0
    assert said.lower() in told.lower()
    assert specs == []


def test_metrics_are_written_as_event_files_where_tensorboard_is_installed(
    tmp_path: Path, specs: list[JobSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    written = train(tmp_path, "sft", "--monitor-type", "tensorboard")
    assert written.exit_code == 0, written.output
    assert list((tmp_path / "out/tensorboard").glob("events.out.tfevents.*"))

    monkeypatch.setitem(sys.modules, "tensorboard.compat.proto.event_pb2", None)
    refused = train(tmp_path, "sft", "--monitor-type", "tensorboard")
    assert "needs the package tensorboard" in str(refused.exception)
    assert len(specs) == 1


HUB_MODEL = "Qwen/Qwen2.5-7B-Instruct"


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    files = {"config.json": b"{}", "model.safetensors": b"weights", "pytorch_model.bin": b"weights again"}
    hub = StandInHub(files, repository=HUB_MODEL)
    monkeypatch.setenv("HF_ENDPOINT", hub.url)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_DISABLE_XET", True)
    yield hub
    hub.close()


def test_a_model_of_the_hub_is_brought_here_once(
    tmp_path: Path, specs: list[JobSpec], hub: StandInHub
) -> None:
    first = train(tmp_path, "sft", "--base-model", HUB_MODEL)
    assert first.exit_code == 0, first.output
    folder = Path(specs[-1].model.path)
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    assert "pytorch_model.bin" not in {path.name for path in folder.iterdir()}

    hub.is_broken = True  # what was downloaded is there without the hub
    again = train(tmp_path, "sft", "--base-model", HUB_MODEL)
    assert again.exit_code == 0, again.output
    assert Path(specs[-1].model.path) == folder


def test_the_model_of_the_settings_is_brought_where_no_option_names_one(
    tmp_path: Path, specs: list[JobSpec], hub: StandInHub
) -> None:
    config = tmp_path / "settings.yaml"
    config.write_text(f"sft: {{base_model: {HUB_MODEL}}}\n")
    result = train(tmp_path, "sft", "--base-model", "", "--config", str(config))
    assert result.exit_code == 0, result.output
    assert "snapshots" in specs[-1].model.path


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("nobody/nothing", "nobody/nothing is no folder here, and the hub does not give it"),
        ("unsloth/Qwen3-8B-bnb-4bit", "unsloth/Qwen3-8B is the same model in 16 bits"),
    ],
)
def test_a_model_that_the_hub_does_not_give_is_told(
    model: str, said: str, tmp_path: Path, specs: list[JobSpec], hub: StandInHub
) -> None:
    result = train(tmp_path, "sft", "--base-model", model)
    assert said in " ".join(f"{result.output} {result.exception}".split())
    assert result.exit_code != 0
    assert specs == []


def test_without_a_network_the_error_says_what_to_do(
    tmp_path: Path, specs: list[JobSpec], hub: StandInHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    result = train(tmp_path, "sft", "--base-model", HUB_MODEL)
    told = result.exception
    assert isinstance(told, Problem)
    assert "the hub does not give it" in told.message
    assert "HF_ENDPOINT" in (told.hint or "")


@pytest.fixture
def modelscope(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInModelScope]:
    files = {"config.json": b"{}", "model.safetensors": b"weights", "pytorch_model.bin": b"weights again"}
    hub = StandInModelScope(files)
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", hub.url)
    monkeypatch.delenv("MODELSCOPE_API_TOKEN", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    yield hub
    hub.close()


def test_a_model_of_modelscope_is_brought_here_once(
    tmp_path: Path, specs: list[JobSpec], modelscope: StandInModelScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = train(tmp_path, "sft", "--base-model", "modelscope:team/tiny")
    assert first.exit_code == 0, first.output
    folder = Path(specs[-1].model.path)
    assert folder == tmp_path / "cache/trellis/modelscope/team/tiny"
    assert (folder / "model.safetensors").read_bytes() == b"weights"
    assert sorted(modelscope.downloaded) == ["config.json", "model.safetensors"]

    assert train(tmp_path, "sft", "--base-model", "modelscope:team/tiny").exit_code == 0
    assert len(modelscope.downloaded) == 2
    assert modelscope.files is not None
    modelscope.files["model.safetensors"] = b"weights, trained further"
    assert train(tmp_path, "sft", "--base-model", "modelscope:team/tiny").exit_code == 0
    assert (folder / "model.safetensors").read_bytes() == b"weights, trained further"

    monkeypatch.setenv("MODELSCOPE_ENDPOINT", "http://127.0.0.1:9")  # it is here without ModelScope
    assert train(tmp_path, "sft", "--base-model", "modelscope:team/tiny").exit_code == 0
    assert Path(specs[-1].model.path) == folder


def test_a_revision_of_a_model_of_modelscope_is_brought_beside_the_others(
    tmp_path: Path, specs: list[JobSpec], modelscope: StandInModelScope
) -> None:
    assert train(tmp_path, "sft", "--base-model", "modelscope:team/tiny").exit_code == 0
    usual = Path(specs[-1].model.path)
    modelscope.branch, modelscope.files["model.safetensors"] = "releases/v2", b"other weights"

    found = train(tmp_path, "sft", "--base-model", "modelscope:team/tiny@releases/v2")
    missing = train(tmp_path, "sft", "--base-model", "modelscope:team/tiny@v3")

    assert found.exit_code == 0, found.output
    folder = Path(specs[-1].model.path)
    assert folder.parent == usual.parent
    assert folder.name == "tiny@releases%2Fv2"
    assert (folder / "model.safetensors").read_bytes() == b"other weights"
    assert (usual / "model.safetensors").read_bytes() == b"weights"
    assert "no such model or revision" in str(missing.exception)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("modelscope:team/nothing", "ModelScope has no such model or revision"),
        ("modelscope:nothing", "is neither a model folder"),
        ("modelscope:../../etc", "is neither a model folder"),
        ("modelscope:team/tiny-bnb-4bit", "16 bits"),
        ("modelscope:team/tiny-bnb-4bit@v1", "16 bits"),
        ("modelscope:team/tiny@", "is neither a model folder"),
        ("modelscope:team/tiny@../../etc", "is neither a model folder"),
    ],
)
def test_a_model_that_modelscope_does_not_give_is_told(
    model: str, said: str, tmp_path: Path, specs: list[JobSpec], modelscope: StandInModelScope
) -> None:
    result = train(tmp_path, "sft", "--base-model", model)

    assert said in " ".join(f"{result.output} {result.exception}".split())
    assert result.exit_code != 0
    assert specs == []


def test_a_download_from_modelscope_that_broke_off_is_no_model(
    tmp_path: Path, specs: list[JobSpec], modelscope: StandInModelScope, monkeypatch: pytest.MonkeyPatch
) -> None:
    modelscope.files = {"config.json": b"{}", "model.safetensors": b"0123456789" * 100}
    assert train(tmp_path, "sft", "--base-model", "modelscope:team/tiny").exit_code == 0
    modelscope.files["model.safetensors"], modelscope.breaks_after = b"abcd" * 100, 100

    broken = train(tmp_path, "sft", "--base-model", "modelscope:team/tiny")
    with monkeypatch.context() as away:
        away.setenv("MODELSCOPE_ENDPOINT", "http://127.0.0.1:9")
        offline = train(tmp_path, "sft", "--base-model", "modelscope:team/tiny")
    again = train(tmp_path, "sft", "--base-model", "modelscope:team/tiny")

    assert "broke off" in str(broken.exception)
    assert "can't be reached" in str(offline.exception)
    assert again.exit_code == 0
    assert (Path(specs[-1].model.path) / "model.safetensors").read_bytes() == b"abcd" * 100


def test_the_rows_that_the_settings_name_are_trained_and_measured_on(
    tmp_path: Path, specs: list[JobSpec]
) -> None:
    for name in ("train", "dev"):
        rows = "".join(json.dumps(ROWS["sft"]) + "\n" for _ in range(100 if name == "train" else 7))
        (tmp_path / f"{name}.jsonl").write_text(rows)
    config = tmp_path / "settings.yaml"
    config.write_text(
        f"sft: {{train_data: {tmp_path / 'train.jsonl'}, dev_data: {tmp_path / 'dev.jsonl'}}}\n"
    )
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")
    command = ["agent", "train", "sft", "--output", str(tmp_path / "out"), "--base-model", str(model)]

    result = RUNNER.invoke(app, [*command, "--config", str(config)])

    assert result.exit_code == 0, result.output
    assert specs[-1].train_data.row_count == 100
    assert specs[-1].validation_data is not None
    assert specs[-1].validation_data.row_count == 7


def test_a_stage_without_rows_says_what_to_name(tmp_path: Path, specs: list[JobSpec]) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text("{}")

    result = RUNNER.invoke(
        app, ["agent", "train", "grpo", "--output", str(tmp_path), "--base-model", str(model)]
    )

    assert isinstance(result.exception, Problem)
    assert "agent_benchmark:train" in str(result.exception.hint)
    assert not specs


def test_a_warm_up_of_the_settings_comes_first_and_its_weights_are_trained_on(
    tmp_path: Path, specs: list[JobSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    def leave_weights(spec: JobSpec, **_: object) -> LocalOutcome:
        specs.append(spec)
        weights = Path(spec.checkpoint_dir) / "global_step_3" / "huggingface"
        weights.mkdir(parents=True)
        for name in ("config.json", "model.safetensors"):
            (weights / name).write_text("{}")
        return LocalOutcome(folder=spec.attempt_dir, outcome="succeeded", step=3, metrics={"loss": 0.5})

    monkeypatch.setattr(agent_train, "run_local", leave_weights)
    config = tmp_path / "settings.yaml"
    config.write_text("warm_up: {enabled: true, samples: 50, focus: [timing]}\n")

    result = train(tmp_path, "sft", "--config", str(config))

    assert result.exit_code == 0, result.output
    warm_up, main = specs
    assert (warm_up.params["max_samples"], warm_up.params["focus_tags"]) == (50, "timing_decision")
    assert main.params["max_samples"] is None
    assert main.model.path == str(Path(warm_up.checkpoint_dir) / "global_step_3" / "huggingface")


@pytest.mark.parametrize("stage", ["dpo", "grpo"])
def test_the_reward_of_the_settings_lands_in_the_run(
    stage: str, tmp_path: Path, specs: list[JobSpec]
) -> None:
    config = tmp_path / "settings.yaml"
    config.write_text("reward: {weights: {tool_accuracy: 0.5}, penalties: {timeout: 0}, run_calls: false}\n")

    result = train(tmp_path, stage, "--config", str(config), "--set", "validation_rows=8")

    assert result.exit_code == 0, result.output
    (term,) = specs[-1].params["rewards"]
    assert term["name"] == "tool_use"
    wanted = {"weight_tool_f1": 0.5, "penalty_timeout": 0, "run_calls": False}
    assert wanted.items() <= term["options"].items()


def test_pairs_are_sampled_by_the_reward_of_the_settings(
    tmp_path: Path, specs: list[JobSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def sample(module: str, options: list[str]) -> dict[str, Any]:
        del module
        asked.append(options)
        pairs = Path(options[options.index("--output") + 1])
        pairs.write_text("".join(json.dumps(ROWS["dpo"]) + "\n" for _ in range(200)))
        return {"pairs": 200, "prompts": 200}

    monkeypatch.setattr(agent_train, "run_module", sample)
    config = tmp_path / "settings.yaml"
    config.write_text("reward: {weights: {format: 0.9}}\n")

    result = train(
        tmp_path, "dpo", "--config", str(config), "--num-samples", "3", "--set", "validation_rows=8"
    )

    assert result.exit_code == 0, result.output
    (options,) = asked
    assert json.loads(options[options.index("--reward") + 1])["weight_format"] == 0.9


def test_a_reward_that_cannot_be_is_refused_with_the_name(tmp_path: Path, specs: list[JobSpec]) -> None:
    config = tmp_path / "settings.yaml"
    config.write_text("reward: {weights: {speed: 1}}\n")

    result = train(tmp_path, "dpo", "--config", str(config))

    assert isinstance(result.exception, Problem)
    assert "weight_speed" in str(result.exception)
    assert not specs


def test_the_mix_of_rows_is_told_at_the_end(
    tmp_path: Path, specs: list[JobSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    mix = {"rows": 30, "task_types": {"timing_decision": 10, "tool_selection": 20}}

    def run(spec: JobSpec, **_: object) -> LocalOutcome:
        (Path(spec.attempt_dir) / "prepared" / "mix.json").write_text(json.dumps(mix))
        return LocalOutcome(folder=spec.attempt_dir, outcome="succeeded", step=3)

    monkeypatch.setattr(agent_train, "run_local", run)

    told, as_json = train(tmp_path, "sft"), train(tmp_path, "sft", "--json")

    assert "trained on 30 rows: timing_decision 10, tool_selection 20" in told.output
    assert json.loads(as_json.stdout)["mix"] == mix
