"""What `trellis agent` is given by name: rows of a split, and models as runs left them."""

import json
from pathlib import Path
from typing import Any

import pytest
from trellis_cli import agent_evaluate, agent_outcome, agent_train
from trellis_cli.agent_sources import find_data, find_model
from trellis_cli.errors import Problem
from trellis_cli.local_run import LocalOutcome
from trellis_cli.main import app
from trellis_contracts.spec import JobSpec
from trellis_recipes.tool_use_settings import BadSettings, load_settings, read_weights
from typer.testing import CliRunner

RUNNER = CliRunner()
CHAT = [{"role": "user", "content": "1+1?"}]

RL = {"data_source": "t", "prompt": CHAT, "reward_model": {"ground_truth": "2"}}


def write_model(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"")
    return folder


def test_rows_are_found_by_name_in_the_folder_of_generated_data(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_AGENT_DATA", str(tmp_path / "generated"))

    with pytest.raises(Problem, match="contains no generated data") as raised:
        find_data("agent_sft:train")
    (tmp_path / "generated").mkdir()
    (tmp_path / "generated" / "agent_tools.jsonl").touch()

    assert "trellis agent generate --output" in (raised.value.hint or "")
    assert find_data("agent_benchmark:test").split == "test"
    assert find_data("agent_sft").path == tmp_path / "generated"
    assert find_data(str(tmp_path)).path == tmp_path
    with pytest.raises(Problem, match="no such file or folder: agent_sft:third"):
        find_data("agent_sft:third")


def test_the_model_of_a_run_is_that_of_its_newest_checkpoint(tmp_path: Path) -> None:
    for step in (9, 10):
        write_model(tmp_path / f"run/checkpoints/global_step_{step}/huggingface")

    found = find_model(str(tmp_path / "run"), scratch=tmp_path / "scratch")

    assert found == str(tmp_path / "run/checkpoints/global_step_10/huggingface")
    assert find_model(found, scratch=tmp_path / "scratch") == found


def test_the_model_of_a_run_is_exported_into_an_empty_folder(tmp_path: Path) -> None:
    write_model(tmp_path / "run/checkpoints/global_step_3/huggingface")
    arguments = ["agent", "export", str(tmp_path / "run"), "--output", str(tmp_path / "model")]

    done = RUNNER.invoke(app, arguments)
    again = RUNNER.invoke(app, arguments)

    assert done.exit_code == 0, done.output
    assert {path.name for path in (tmp_path / "model").iterdir()} == {"config.json", "model.safetensors"}
    assert isinstance(again.exception, Problem)


def test_a_checkpoint_in_shards_is_not_called_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    checkpoint = tmp_path / "run/checkpoints/global_step_3"
    (checkpoint / "actor").mkdir(parents=True)
    outcome = LocalOutcome(str(tmp_path / "run"), outcome="succeeded", checkpoint=str(checkpoint))

    agent_outcome.print_outcome(outcome, "agent_grpo", [], mix=None, as_json=False)

    said = capsys.readouterr().out.replace("\n", "")
    assert agent_outcome.find_loadable(outcome) is None
    assert str(checkpoint) not in said
    assert f"trellis agent export {tmp_path}/run" in said


@pytest.mark.slow
def test_the_accuracy_of_an_agents_own_data_is_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    key = "val-core/toolbox/planning/acc/mean@1"
    outcome = LocalOutcome(str(tmp_path / "run"), outcome="succeeded", metrics={key: 0.25, "other": 1.0})

    agent_outcome.print_outcome(outcome, "agent_grpo", [], mix=None, as_json=False)

    assert key in capsys.readouterr().out


def test_the_adapter_of_a_run_is_folded_into_its_base(tmp_path: Path) -> None:
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM
    from trellis_train.agents import starter

    tokenizer = starter.make_tokenizer(["find Ada"] * 3, vocabulary=300)
    starter.write_model(tmp_path / "base", tokenizer, seed=0)
    config = LoraConfig(r=2, target_modules=["q_proj"], task_type="CAUSAL_LM", init_lora_weights=False)
    adapted = get_peft_model(AutoModelForCausalLM.from_pretrained(tmp_path / "base"), config)
    checkpoint = tmp_path / "run/checkpoints/global_step_3"
    adapted.save_pretrained(checkpoint / "lora_adapter")
    outcome = LocalOutcome(str(tmp_path / "run"), checkpoint=str(checkpoint))

    found = find_model(str(tmp_path / "run"), scratch=tmp_path / "scratch")

    for folder in (found, agent_outcome.find_loadable(outcome)):
        AutoModelForCausalLM.from_pretrained(folder)
    assert Path(found, "tokenizer.json").is_file()


def test_task_weights_are_read_as_json_and_by_their_short_names(tmp_path: Path) -> None:
    text = '{"tool_selection":0.35,"planning":0.30,"timing":0.20,"retrieval":0.15}'

    assert read_weights(text) == {
        "tool_selection": 0.35, "multi_step_planning": 0.30, "timing_decision": 0.20, "tool_retrieval": 0.15
    }  # fmt: skip
    assert read_weights("planning=1") == {"multi_step_planning": 1.0}
    with pytest.raises(BadSettings, match="no JSON"):
        read_weights("{planning}")


def test_a_file_of_settings_may_use_the_names_of_the_design(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(
        "sft: {num_epochs: 2, lora_r: 8, lora_alpha: 16, lr_scheduler: linear, task_weights: {timing: 1}}\n"
        "rl: {algorithm: grpo, grpo_config: {group_size: 8}}\n"
    )

    settings = load_settings(file)

    parameters = settings.sft.parameters(given_only=True)
    names = ("epochs", "lora_rank", "lora_alpha", "lr_schedule")
    assert tuple(parameters[name] for name in names) == (
        2, 8, 16, "linear"
    )  # fmt: skip
    assert parameters["weight_timing_decision"] == 1
    assert settings.rl.parameters(given_only=True) == {"group_size": 8}
    file.write_text("sft: {num_epochs: 2, epochs: 3}\n")
    with pytest.raises(BadSettings, match="epochs is set twice"):
        load_settings(file)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("development: {lora_r: 16}", "development is a preset, chosen with 'preset: development'"),
        ("production: {base_model: x}", "such as 'sft: {base_model: Qwen/Qwen2.5-7B-Instruct, lora_r: 16}'"),
        ("base_model: x", "base_model belongs into 'sft:', as 'sft: {base_model: ...}'"),
        (
            "num_epochs: 3\nlora_r: 8",
            "num_epochs belongs into 'sft:', as 'sft: {epochs: ...}'; lora_r belongs",
        ),
        ("load_in_4bit: true", "load_in_4bit belongs into 'sft:'"),
        ("dpo_config: {beta: 0.2}", "dpo_config belongs into 'rl:', as 'rl: {dpo: ...}'"),
        ("algorithm: ppo", "algorithm belongs into 'rl:', as 'rl: {algorithm: ...}'"),
        ("num_epochs: 3\ncooking: 1", "'sft: {epochs: ...}'; cooking is unknown"),
        ("cooking: 1", "cooking: Extra inputs are not permitted"),
    ],
)
def test_a_key_at_the_wrong_place_is_told_with_its_place(content: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(content)

    with pytest.raises(BadSettings) as caught:
        load_settings(file)

    assert told in str(caught.value)
    assert "Value error" not in str(caught.value)


def test_a_warm_up_may_use_the_names_of_the_design(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(
        "warmup: {enabled: true, data_source: agent_sft, samples: 50,"
        " focus: [tool_format_understanding, basic_planning_structure]}\n"
    )

    warm_up = load_settings(file).warm_up

    assert warm_up.enabled
    assert warm_up.parameters() == {"max_samples": 50, "focus_tags": "tool_selection,multi_step_planning"}
    file.write_text("warm_up: {focus: [cooking]}\n")
    with pytest.raises(BadSettings, match=r"warm_up\.focus_tags\.0"):
        load_settings(file)


def test_dpo_makes_pairs_of_the_models_own_responses_where_it_is_told_how_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []
    begun: list[JobSpec] = []

    def sample(module: str, options: list[str]) -> dict[str, Any]:
        asked.append([module, *options])
        pair = {"prompt": "1+1?", "chosen": "2", "rejected": "3"}
        Path(options[options.index("--output") + 1]).write_text((json.dumps(pair) + "\n") * 200)
        return {"pairs": 200, "prompts": 200}

    def run(spec: JobSpec, **_: object) -> LocalOutcome:
        begun.append(spec)
        return LocalOutcome(folder=spec.attempt_dir, outcome="succeeded")

    monkeypatch.setenv("TRELLIS_PLATFORM", "cpu")
    monkeypatch.setattr(agent_train, "run_module", sample)
    monkeypatch.setattr(agent_train, "run_local", run)
    model = write_model(tmp_path / "sft/checkpoints/global_step_4/huggingface")
    data = tmp_path / "rows.jsonl"
    data.write_text(json.dumps(RL) + "\n")
    command = ["agent", "train", "dpo", "--sft-model", str(tmp_path / "sft"), "--data", str(data)]

    result = RUNNER.invoke(app, [*command, "--output", str(tmp_path / "out"), "--num-samples", "4"])

    assert result.exit_code == 0, result.output
    assert asked[0][1:5] == ["--model", str(model), "--data", str(data)]
    assert asked[0][asked[0].index("--samples") + 1] == "4"
    assert begun[0].model.path == str(model)
    assert begun[0].train_data is not None
    assert begun[0].train_data.row_count == 200


def test_an_evaluation_takes_a_run_a_named_benchmark_and_short_names_of_metrics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def measure(module: str, options: list[str]) -> dict[str, Any]:
        asked.append(options)
        return {"overall": {"mean": 1.0, "std": 0.0, "count": 1}}

    monkeypatch.setattr(agent_evaluate, "run_module", measure)
    model = write_model(tmp_path / "dpo/checkpoints/global_step_4/huggingface")
    rows = tmp_path / "rl" / "test.jsonl"
    rows.parent.mkdir()
    rows.write_text(json.dumps(RL) + "\n")
    options = ["--metrics", "tool_accuracy,plan_success,efficiency", "--json"]

    result = RUNNER.invoke(
        app,
        ["agent", "evaluate", "--model", str(tmp_path / "dpo"), "--benchmark", str(tmp_path), *options],
    )

    assert result.exit_code == 0, result.output
    (given,) = asked
    assert given[:4] == ["--model", str(model), "--data", str(rows)]
    named = given[given.index("--metrics") + 1]
    assert named == "tool_selection_accuracy,plan_success_rate,step_efficiency"


@pytest.mark.parametrize("machine", ["cpu", "cuda"])
@pytest.mark.parametrize(
    "command",
    [["evaluate"], ["pairs", "--output", "pairs.jsonl"], ["train", "dpo", "--num-samples", "2"]],
    ids=lambda command: command[0],
)
def test_models_are_sampled_on_what_the_machine_has(
    command: list[str], machine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def sample(module: str, options: list[str]) -> dict[str, Any]:
        asked.append(options)
        raise Problem("enough")

    monkeypatch.setenv("TRELLIS_PLATFORM", machine)
    monkeypatch.setattr(agent_evaluate, "run_module", sample)
    monkeypatch.setattr(agent_train, "run_module", sample)
    model = write_model(tmp_path / "model")
    rows = tmp_path / "rows.jsonl"
    rows.write_text(json.dumps(RL) + "\n")
    output = [] if "--output" in command else ["--output", str(tmp_path / "out")]

    RUNNER.invoke(app, ["agent", *command, "--base-model", str(model), "--data", str(rows), *output])

    (given,) = asked
    assert given[given.index("--platform") + 1] == machine


@pytest.mark.parametrize(
    ("data", "split", "found", "said"),
    [
        ("folder", None, "test", None),
        ("folder", "dev", "dev", None),
        ("rows.jsonl", None, "rows", None),
        ("rows.jsonl", "dev", None, "is a file, which has no split dev"),
        ("agent_benchmark:dev", "dev", "dev", None),
        ("agent_benchmark:dev", "test", None, "names another split than test"),
    ],
)
def test_the_split_that_is_measured_is_the_one_that_is_named(
    data: str, split: str | None, found: str | None, said: str | None,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    model, measured = write_model(tmp_path / "model"), []
    for place in ("folder/rl/dev.jsonl", "folder/rl/test.jsonl", "rows.jsonl"):
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(json.dumps(RL) + "\n")
    (tmp_path / "folder" / "agent_tools.jsonl").touch()
    monkeypatch.setenv("TRELLIS_AGENT_DATA", str(tmp_path / "folder"))
    monkeypatch.setattr(agent_evaluate, "TOOLS_FILE", "none")
    monkeypatch.setattr(agent_evaluate, "run_module", lambda _module, options: measured.append(options) or {})
    given = data if ":" in data else str(tmp_path / data)
    command = ["agent", "evaluate", "--model", str(model), "--data", given, "--json"]

    done = RUNNER.invoke(app, [*command, *(["--split", split] if split else [])])

    if said is not None:
        assert said in str(done.exception)
        return
    assert done.exit_code == 0, done.exception
    assert Path(measured[0][measured[0].index("--data") + 1]).stem == found
