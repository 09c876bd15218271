"""The tool-use pipeline under the names of its design: the settings and the reward are those that train."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trellis
from trellis_cli.agent_settings_use import list_unused
from trellis_cli.main import app
from trellis_recipes.catalogue import get_recipe
from trellis_recipes.recipe_parameters import resolve_parameters
from trellis_recipes.tool_use_settings import RLSettings, SFTSettings, load_settings
from trellis_train.agents.episode.tool_calls import render_tool_call
from typer.testing import CliRunner

#: With what Python's ``splitlines`` takes for the ends of lines.
PAIR = {"margin": 0.5, "prompt": "one\u2028two\u2029three\x85four"}


def row(number: int, text: str = "hello there") -> dict[str, Any]:
    messages = [{"role": "user", "content": text}, {"role": "assistant", "content": f"answer {number}"}]
    return {"id": f"row-{number}", "messages": messages, "metadata": {"loss": number}}


def test_the_defaults_are_those_of_the_pipeline_and_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    sft = trellis.AgentSFTConfig(num_epochs=2, lora_r=8, task_weights={"planning": 1.0})
    rl = trellis.RLTrainingConfig(algorithm="grpo", grpo_config={"group_size": 8})

    read = load_settings(trellis.write_settings(tmp_path / "settings.yaml", sft=sft, rl=rl))

    assert (read.sft.epochs, read.sft.lora.r, read.sft.task_weights) == (2, 8, {"multi_step_planning": 1.0})
    assert (read.rl.algorithm, read.rl.grpo.group_size) == ("grpo", 8)
    plain = load_settings(trellis.write_settings(tmp_path / "plain.yaml", sft=trellis.AgentSFTConfig()))
    assert plain.sft.parameters() == SFTSettings().parameters()
    assert not {"train_data", "dev_data"} & plain.sft.model_fields_set
    assert all(list_unused(plain, command) == [] for command in ("sft", "dpo", "pipeline"))
    own = trellis.AgentSFTConfig(dev_data="mine.jsonl")
    assert load_settings(trellis.write_settings(tmp_path / "own.yaml", sft=own)).sft.dev_data == "mine.jsonl"
    assert trellis.RLTrainingConfig().dpo_config == RLSettings().dpo.model_dump(exclude_none=True)


@pytest.mark.parametrize(
    "wrong", [{"num_epochs": 0}, {"task_weights": {"cooking": 1}}, {"lr_scheduler": "up"}]
)
def test_a_value_that_cannot_be_is_refused_at_once(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="validation error"):
        trellis.AgentSFTConfig(**wrong)


def test_the_reward_is_the_one_that_trains() -> None:
    model = trellis.AgentRewardModel(trellis.AgentRewardConfig(penalties={"wrong_tool": -0.9}))
    right, wrong = render_tool_call("find", {}), render_tool_call("book", {})
    truth = {"target_tools": ["find"], "optimal_steps": 1}

    good, bad = (model.compute_reward("?", text, truth) for text in (right, wrong))
    failed = model.compute_reward("?", right, truth, [{"success": False, "timed_out": True}])

    assert (good["total"], good["penalties"]) == (1.0, {})
    assert set(good["breakdown"]) == set(trellis.AgentRewardConfig().weights)
    assert bad["penalties"]["wrong_tool"] == -0.9
    assert bad["signed"] < 0 == bad["total"]
    assert "timeout" in failed["penalties"]
    assert bad["feedback"]
    with pytest.raises(ValueError, match="unknown weight speed"):
        trellis.AgentRewardModel(trellis.AgentRewardConfig(weights={"speed": 1}))


def test_the_reward_of_a_response_knows_how_many_calls_are_needed_and_runs_simulated_tools() -> None:
    model = trellis.AgentRewardModel()
    three = "".join(render_tool_call("find", {"q": number}) for number in range(3))

    needed = model.compute_reward("?", three, {"target_tools": ["find"], "optimal_steps": 3})
    needless = model.compute_reward("?", three, {"target_tools": ["find"]})
    tool = {
        "name": "find",
        "parameters": {"type": "object", "required": ["q"]},
        "returns": {"shape": "value", "measure": "count", "minimum": 1, "maximum": 9},
    }
    truth = {"steps": [{"name": "find", "arguments": {"q": 1}}]}
    refused = model.compute_reward("?", render_tool_call("find", {}), truth, tools=[tool])

    assert (needed["breakdown"]["efficiency"], needed["total"]) == (1.0, 1.0)
    assert needless["breakdown"]["efficiency"] == pytest.approx(0.6)
    assert refused["breakdown"]["task_completion"] == 0.0
    assert "Calls that failed: find" in refused["feedback"]


def test_rows_are_chosen_and_replayed_across_runs(tmp_path: Path) -> None:
    rows = [row(number) for number in range(6)]

    chosen = trellis.CoresetSelector("loss_topk").select(rows, 2)
    first = trellis.OnlineContinualLearner(4, 0.5, path=tmp_path / "buffer").update(rows[:4])
    second = trellis.OnlineContinualLearner(4, 0.5, path=tmp_path / "buffer").update(rows[4:])

    assert [each["id"] for each in chosen] == ["row-5", "row-4"]
    assert first == rows[:4]
    assert len(second) == 3
    assert second[2]["id"] in {each["id"] for each in rows[:4]}


def test_bits_of_the_base_are_taken_where_the_engine_can_and_refused_with_the_reason_elsewhere() -> None:
    assert SFTSettings.model_validate({"load_in_4bit": True}).parameters(given_only=True) == {
        "quantization": "4bit"
    }
    assert SFTSettings.model_validate({"load_in_8bit": False}).parameters(given_only=True) == {}
    dpo = RLSettings.model_validate({"dpo_config": {"load_in_8bit": True}})
    assert dpo.parameters("dpo", given_only=True) == {"quantization": "8bit"}
    assert (
        RLSettings.model_validate({"grpo": {"load_in_4bit": False}}).parameters("grpo", given_only=True) == {}
    )
    for algorithm in ("ppo", "grpo"):
        with pytest.raises(ValueError, match=r"load_in_4bit: verl .* no way to hold it in fewer"):
            RLSettings.model_validate({algorithm: {"load_in_4bit": True}})
    with pytest.raises(ValueError, match="one of load_in_4bit, load_in_8bit"):
        trellis.AgentSFTConfig(load_in_4bit=True, load_in_8bit=True)


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What would be run; a training answers as the command does."""
    seen: list[list[str]] = []

    def run(arguments: list[str]) -> Any:
        settings = arguments[arguments.index("--config") + 1] if "--config" in arguments else None
        seen.append([*arguments, *([Path(settings).read_text()] if settings else [])])
        if arguments[0] == "pairs":
            written = json.dumps(PAIR, ensure_ascii=False) + "\n"
            Path(arguments[arguments.index("--output") + 1]).write_text(written, encoding="utf-8")
        if arguments[0] == "evaluate":
            return {"overall": {"mean": 0.5, "std": 0.1, "count": 3}}
        return {"outcome": "succeeded", "folder": "out", "step": 2, "metrics": {"loss": 1.0}, "seconds": 3}

    monkeypatch.setattr("trellis.agent_trainers._run", run)
    return seen


def test_the_trainers_are_the_commands_with_their_settings(commands: list[list[str]]) -> None:
    sft = trellis.AgentSFTTrainer(trellis.AgentSFTConfig(base_model="base", num_epochs=1), "out")
    rl = trellis.AgentRLTrainer(trellis.RLTrainingConfig(algorithm="dpo"), "out", "better")

    done = sft.train("rows.jsonl", total_steps=2)
    rl.train("data", num_samples=4)
    found = trellis.AgentTrainingEvaluator("better").evaluate(metrics=["overall"], limit=3)

    assert (done.outcome, done.step, done.metrics) == ("succeeded", 2, {"loss": 1.0})
    first, second, third = commands
    assert first[:4] == ["train", "sft", "--output", "out"]
    assert " ".join(first).count("--data rows.jsonl --base-model base") == 1
    assert "total_steps=2" in first
    assert "num_epochs: 1" in first[-1]
    assert second[:4] == ["train", "dpo", "--output", "better"]
    assert second[-5:-1] == ["--sft-model", "out", "--num-samples", "4"]
    assert third[:5] == ["evaluate", "--model", "better", "--data", "agent_benchmark:test"]
    assert found["overall"]["count"] == 3


def test_dpo_samples_its_pairs_by_the_reward_model(commands: list[list[str]]) -> None:
    reward = trellis.AgentRewardModel(trellis.AgentRewardConfig(run_calls=False))
    rl = trellis.AgentRLTrainer(sft_model="out", reward_model=reward)

    rl.train("prompts.jsonl", num_samples=4)
    rl.generate_preference_pairs("prompts.jsonl")

    assert "--no-run-calls" in commands[1]
    assert "--no-compare-arguments" not in commands[1]
    (term,) = json.loads(next(each for each in commands[0] if each.startswith("rewards=")).partition("=")[2])
    assert term["options"] == reward.options
    assert term["options"]["run_calls"] is False


def test_dpo_with_a_reward_model_samples_pairs_unasked(commands: list[list[str]]) -> None:
    rl = trellis.AgentRLTrainer(sft_model="out", reward_model=trellis.AgentRewardModel())

    rl.train()
    rl.reward_model = None
    rl.train("pairs.jsonl")

    ranked, given = commands
    assert ranked[ranked.index("--num-samples") + 1] == "4"
    assert any(each.startswith("rewards=") for each in ranked)
    assert "--num-samples" not in given


def test_pairs_and_reinforcement_use_the_weights_of_the_reward_model(commands: list[list[str]]) -> None:
    reward = trellis.AgentRewardModel(trellis.AgentRewardConfig(weights={"tool_accuracy": 1.0}))
    rl = trellis.AgentRLTrainer(
        trellis.RLTrainingConfig(algorithm="grpo"), sft_model_path="out", reward_model=reward
    )

    pairs = rl.generate_preference_pairs("prompts.jsonl", num_samples=3, limit=5)
    rl.train("prompts.jsonl")

    assert pairs == [PAIR]
    sampled, trained = commands
    given = dict(zip(sampled[1::2], sampled[2::2], strict=True))
    assert (given["--model"], given["--num-samples"], given["--limit"]) == ("out", "3", "5")
    assert json.loads(given["--reward-weights"]) == reward.weights
    (term,) = json.loads(next(each for each in trained if each.startswith("rewards=")).partition("=")[2])
    assert check_rewards_of(term) == []


def check_rewards_of(term: dict[str, Any]) -> list[str]:
    """What the recipe has against a reward."""
    _, problems = resolve_parameters(get_recipe("agent_grpo"), None, {"rewards": [term]})
    return [str(problem) for problem in problems]


def test_dialogs_are_formatted_as_for_the_training() -> None:
    tool = {"name": "find", "description": "Finds.", "parameters": {"type": "object", "properties": {}}}
    turns = [
        {"role": "user", "content": "Find it."},
        {"role": "assistant", "content": "", "calls": [{"name": "find", "arguments": {}}]},
    ]
    formatter = trellis.AgentSFTFormatter([tool])

    row = formatter.format_dialog({"id": "d1", "tools": ["find"], "turns": turns})

    assert (row["input"], row["task_type"]) == ("Find it.", "tool_retrieval")
    assert '"name": "find"' in row["output"]
    with pytest.raises(ValueError, match="book"):
        formatter.format_dialog({"id": "d2", "tools": ["book"], "turns": turns})


def test_what_was_trained_is_saved_by_the_command(commands: list[list[str]]) -> None:
    trainer = trellis.AgentLoRATrainer(trellis.AgentSFTConfig(base_model="base"), "out")

    assert trainer.save_model("better") == Path("better")
    assert commands == [["export", "out", "--output", "better"]]


def test_reinforcement_needs_a_model_to_begin_with(commands: list[list[str]]) -> None:
    with pytest.raises(ValueError, match="sft_model is missing"):
        trellis.AgentRLTrainer().train()
    assert commands == []


def test_an_evaluator_of_a_benchmark_is_given_the_model(commands: list[list[str]]) -> None:
    evaluator = trellis.AgentTrainingEvaluator("agent_benchmark")
    trainer = trellis.AgentRLTrainer(sft_model="out", output_dir="better")

    found = evaluator.evaluate(model=trainer.model, split="dev")
    trellis.AgentTrainingEvaluator("better").evaluate(split="dev")

    assert found["overall"]["count"] == 3
    for command in commands:
        assert command[:5] == ["evaluate", "--model", "better", "--data", "agent_benchmark"]
        assert command[-2:] == ["--split", "dev"]
    with pytest.raises(ValueError, match="given twice"):
        evaluator.evaluate("rows.jsonl", model="better")
    with pytest.raises(TypeError, match=r"such as a trainer's \.model, not of the type object"):
        evaluator.evaluate(model=object())  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a benchmark is named, not loaded"):
        trellis.AgentTrainingEvaluator(object())  # type: ignore[arg-type]


def test_pairs_of_rows_at_hand_and_why_texts_alone_make_none(
    commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    written: list[str] = []
    run = trellis.agent_trainers._run
    monkeypatch.setattr(
        "trellis.agent_trainers._run",
        lambda command: (
            written.append(Path(command[command.index("--data") + 1]).read_text()) or run(command)
        ),
    )
    trainer = trellis.AgentRLTrainer(sft_model="out")
    prompt = [{"role": "user", "content": "To Oslo!"}]
    rows = [{"prompt": prompt, "reward_model": {"ground_truth": "{}"}}] * 2

    assert trainer.generate_preference_pairs(rows) == [PAIR]
    assert [json.loads(line) for line in written[0].splitlines()] == rows
    for texts in (["To Oslo!"], [{"prompt": prompt}], []):
        with pytest.raises(ValueError, match="no reference to score responses by"):
            trainer.generate_preference_pairs(texts)  # type: ignore[arg-type]


def prepare(folder: Path, rows: list[dict[str, Any]], **parameters: Any) -> trellis.PreparedDatasets:
    model, data = folder / "model", folder / "rows.jsonl"
    model.mkdir(exist_ok=True)
    (model / "config.json").write_text("{}")
    data.write_text("".join(json.dumps(each) + "\n" for each in rows))
    config = trellis.AgentSFTConfig(base_model=str(model), batch_size=1, gradient_accumulation=1)
    # The command itself, in this process.
    return trellis.AgentSFTTrainer(config, folder / "out").prepare_datasets(data, data, **parameters)


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands run here: starting one takes seconds."""

    def popen(command: list[str], **_: Any) -> Any:
        result = CliRunner().invoke(app, command[3:])
        said = f"error: {result.exception}" if result.exception else result.stderr
        return SimpleNamespace(returncode=result.exit_code, communicate=lambda: (result.stdout, said))

    monkeypatch.setenv("TRELLIS_PLATFORM", "cpu")
    monkeypatch.setattr("trellis.agent_trainers.subprocess", SimpleNamespace(Popen=popen, PIPE=None))


def test_preparing_datasets_counts_what_training_learns_from(tmp_path: Path, in_process: None) -> None:
    rows = [{**row(number), "task_type": "timing_decision"} for number in range(12)]
    rows += [{**row(number), "task_type": "tool_selection"} for number in range(12, 20)]

    found = prepare(tmp_path, rows, max_samples=10, validation_rows=5)

    assert (found.train_rows, found.dataset_rows, found.left_out_rows, found.replayed_rows) == (10, 20, 10, 0)
    assert found.validation_rows == 5
    assert sum(found.task_types.values()) == 10


@pytest.mark.parametrize(
    ("rows", "code", "said"),
    [
        ([{**row(1), "task_type": "timing_decision"}], "no_usable_rows", "none of the 1 rows"),
        ([{"messages": []}], "rows_unusable", "Row 1 of dataset rows"),
    ],
)
def test_datasets_of_which_nothing_can_be_trained_on_have_a_code(
    rows: list[dict[str, Any]], code: str, said: str, tmp_path: Path, in_process: None
) -> None:
    with pytest.raises(trellis.AgentTrainingFailed, match=said) as raised:
        prepare(tmp_path, rows, focus_tags="tool_retrieval", mix_tasks=False, validation_rows=0)

    assert raised.value.code == code


def test_a_dataset_that_is_missing_is_named(tmp_path: Path, in_process: None) -> None:
    (tmp_path / "config.json").write_text("{}")
    trainer = trellis.AgentSFTTrainer(trellis.AgentSFTConfig(base_model=str(tmp_path)), tmp_path / "out")

    with pytest.raises(trellis.AgentTrainingFailed, match=r"no such file or folder: nowhere\.jsonl"):
        trainer.prepare_datasets("nowhere.jsonl")


@pytest.mark.slow
def test_what_the_command_refuses_is_raised_in_its_words(tmp_path: Path) -> None:
    trainer = trellis.AgentSFTTrainer(trellis.AgentSFTConfig(base_model="base"), tmp_path / "out")
    with pytest.raises(trellis.AgentTrainingFailed, match="base is neither a model folder"):
        trainer.train(tmp_path / "nowhere.jsonl")
