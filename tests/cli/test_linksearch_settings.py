"""Settings of Link Search and the checkpoint that a run goes on from."""

import inspect
import json
from pathlib import Path
from typing import Any

import pytest
from trellis_cli import linksearch
from trellis_cli.errors import Problem
from trellis_cli.linksearch_resume import choose_checkpoint, locate_model
from trellis_cli.linksearch_settings import REWARD_WEIGHTS, LinkSearchSettings, read_settings
from trellis_cli.local_job import LocalJob
from trellis_cli.local_run import LocalOutcome
from trellis_recipes.catalogue import get_recipe
from trellis_testing.stand_in_modelscope import StandInModelScope
from typer.testing import CliRunner

SHIPPED = Path(__file__).parents[2] / "configs" / "linksearch.yaml"
SECRET = "hf_abcdefghijklmnop"


def write_yaml(folder: Path, text: str) -> Path:
    path = folder / "settings.yaml"
    path.write_text(text)
    return path


def test_the_command_line_wins_over_the_environment_over_yaml_over_the_defaults(tmp_path: Path) -> None:
    config = write_yaml(tmp_path, "MAX_STEPS: 1\npatience: 2\nSEED: 3\n")
    environment = {"MAX_STEPS": "10", "PATIENCE": "20"}

    settings = read_settings({"max_steps": 100, "patience": None}, config=config, environment=environment)

    assert (settings.max_steps, settings.patience, settings.seed, settings.max_turns) == (100, 20, 3, 15)


def test_the_defaults_are_those_of_the_specification() -> None:
    settings = LinkSearchSettings()

    assert (settings.train_dataset_size, settings.eval_dataset_size) == (1000, 100)
    assert (settings.max_steps, settings.learning_rate, settings.num_generations) == (200, 1e-5, 4)
    assert (settings.max_turns, settings.max_profiles, settings.max_tokens) == (15, 10, 4096)
    assert (settings.per_device_train_batch_size, settings.gradient_accumulation_steps) == (2, 4)
    assert (settings.target_accuracy, settings.patience) == (0.8, 5)
    assert (settings.eval_steps, settings.save_steps, settings.seed) == (10, 10, 42)


def test_the_file_that_ships_names_every_setting_with_its_default() -> None:
    import yaml

    shipped = yaml.safe_load(SHIPPED.read_text(encoding="utf-8"))

    settings = read_settings({}, config=SHIPPED, environment={})

    # The hub's token belongs into no file.
    assert set(shipped) == set(LinkSearchSettings.model_fields) - {"hf_token"}
    assert settings == LinkSearchSettings()


def test_every_setting_is_an_option_too() -> None:
    from trellis_cli.linksearch import train

    options = set(inspect.signature(train).parameters)

    # --set gives params; a token among the arguments could be read by everybody on the machine.
    assert set(LinkSearchSettings.model_fields) - options == {"hf_token", "params"}
    assert "parameters" in options


#: What an evaluation takes from a training's settings to no effect.
ONLY_TRAINED = {
    "enable_detailed_logging", "learning_rate", "max_steps", "num_generations", "patience", "target_accuracy",
    "per_device_train_batch_size", "gradient_accumulation_steps", "eval_steps", "save_steps",
    "train_dataset_size",
}  # fmt: skip


def test_an_evaluation_has_an_option_for_every_setting_that_it_reads() -> None:
    from trellis_cli.linksearch import evaluate

    options = set(inspect.signature(evaluate).parameters)
    rewards = {name for name in LinkSearchSettings.model_fields if name.startswith(("reward_", "penalty_"))}

    # The weights of the reward come from the file of the training, or from the environment.
    left_out = set(LinkSearchSettings.model_fields) - options - ONLY_TRAINED - rewards
    assert left_out == {"hf_token", "params", "model_name"}  # --set gives params, --checkpoint the model
    assert "parameters" in options


def test_every_setting_is_an_environment_variable_too() -> None:
    environment = {"MODE": "simple", "ENABLE_DETAILED_LOGGING": "true", "TARGET_ACCURACY": "none"}

    parameters = read_settings({}, environment={**environment, "PARAMS": '{"lora_rank": 8}'}).parameters()

    assert (parameters["mode"], parameters["detailed_logging"]) == ("simple", True)
    assert (parameters["target_accuracy"], parameters["lora_rank"]) == (None, 8)
    with pytest.raises(Problem, match="PARAMS"):
        read_settings({}, environment={"PARAMS": "lora_rank=8"})


def test_weights_of_the_reward_come_from_the_line_the_environment_and_yaml(tmp_path: Path) -> None:
    config = write_yaml(tmp_path, "reward_found: 0.3\nPENALTY_DENIED: 0.4\nreward_score: 2\n")

    parameters = read_settings(
        {"reward_score": 3.0}, config=config, environment={"PENALTY_DENIED": "0.6"}
    ).parameters()

    given = {"reward_score": 3.0, "reward_found": 0.3, "penalty_denied": 0.6, "penalty_malformed": 0.25}
    assert given.items() <= parameters.items()
    of_recipe = {each.name: each.default for each in get_recipe("linksearch").parameters}
    assert {name: of_recipe[name] for name in REWARD_WEIGHTS} == {
        name: LinkSearchSettings.model_fields[name].default for name in REWARD_WEIGHTS
    }
    with pytest.raises(Problem, match="PENALTY_DENIED"):
        read_settings({}, environment={"PENALTY_DENIED": "-1"})


#: A value that differs from the default, of each setting of a training.
OTHERS: dict[str, Any] = {
    **dict.fromkeys(REWARD_WEIGHTS, 7.0),
    "profile_db_path": "other/profiles.db", "queries": "other", "hf_token": SECRET, "model_name": "a/b",
    "mode": "simple", "enable_detailed_logging": True, "tool_template": "hermes", "train_dataset_size": 7,
    "eval_dataset_size": 7, "max_steps": 7, "learning_rate": 0.7, "num_generations": 7, "max_turns": 7,
    "max_profiles": 7, "target_accuracy": 0.7, "max_tokens": 777, "per_device_train_batch_size": 7,
    "gradient_accumulation_steps": 7, "eval_steps": 7, "save_steps": 7, "patience": 7,
    "monitor_type": "tensorboard", "seed": 7, "gpus": 7, "output_dir": "elsewhere", "preset": "cpu-tiny",
    "params": {"lora_rank": 7},
}  # fmt: skip


def test_every_setting_changes_the_training(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def remember(*given: Any, **named: Any) -> Any:
        asked.append(
            str((given, {name: value and value.get_secret_value() for name, value in named.items()}))
        )
        return {}

    monkeypatch.setattr(linksearch, "_ask", remember)
    monkeypatch.setattr(linksearch, "require_gpus", lambda count: count)
    monkeypatch.setattr(linksearch, "write_spec", lambda job: job)
    monkeypatch.setattr(linksearch, "open_writer", lambda *given, **named: (given, named))
    monkeypatch.setattr(linksearch, "run_local", lambda job, **more: (job, more))

    def train(given: dict[str, Any]) -> str:
        asked.clear()
        settings = read_settings(given, environment={})
        return str((linksearch._run(linksearch.make_job(settings), settings), asked))

    usual = train({})

    assert set(OTHERS) == set(LinkSearchSettings.model_fields)
    assert [name for name, value in OTHERS.items() if train({name: value}) == usual] == []


@pytest.mark.parametrize(
    ("options", "environment", "expected"),
    [
        ([], {}, "masked"),
        (["--mode", "simple"], {}, "simple"),
        ([], {"MODE": "rollout"}, "rollout"),
        (["--mode", "masked"], {"MODE": "rollout"}, "masked"),
    ],
)
def test_an_evaluation_plays_episodes_in_the_mode_of_the_settings(
    options: list[str],
    environment: dict[str, str],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    measured: list[LocalJob] = []

    def remember(job: LocalJob, **_more: Any) -> LocalOutcome:
        measured.append(job)
        return LocalOutcome(folder=str(tmp_path), outcome="succeeded")

    monkeypatch.setattr(linksearch, "_ask", lambda *_given, **_named: {})
    monkeypatch.setattr(linksearch, "require_gpus", lambda count: count)
    monkeypatch.setattr(linksearch, "write_spec", lambda job: job)
    monkeypatch.setattr(linksearch, "run_local", remember)

    done = CliRunner().invoke(
        linksearch.app, ["evaluate", "--output-dir", str(tmp_path), *options], env=environment
    )

    assert done.exit_code == 0, done.output
    assert [(job.params["mode"], job.only_validates) for job in measured] == [(expected, True)]


def test_an_evaluation_takes_a_tool_template_lengths_and_parameters(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    measured: list[LocalJob] = []
    asked: list[tuple[str, ...]] = []

    def ask(*given: str, **_named: Any) -> Any:
        asked.append(given)
        return []

    def remember(job: LocalJob, **_more: Any) -> LocalOutcome:
        measured.append(job)
        return LocalOutcome(folder=str(tmp_path), outcome="succeeded")

    monkeypatch.setattr(linksearch, "_ask", ask)
    monkeypatch.setattr(linksearch, "require_gpus", lambda count: count)
    monkeypatch.setattr(linksearch, "write_spec", lambda job: job)
    monkeypatch.setattr(linksearch, "run_local", remember)
    options = ["--tool-template", "hermes"]

    validated = CliRunner().invoke(linksearch.app, ["validate", "--model-name", str(tmp_path), *options])
    own = ["--max-tokens", "99", "--set", "temperature=0.5"]
    done = CliRunner().invoke(linksearch.app, ["evaluate", "--output-dir", str(tmp_path), *options, *own])

    assert (validated.exit_code, done.exit_code) == (0, 0), validated.output + done.output
    assert asked[0][asked[0].index("--tool-template") + 1] == "hermes"
    (job,) = measured
    assert (job.params["tool_template"], job.params["temperature"]) == ("hermes", 0.5)
    assert 99 in job.params.values()


def test_a_wrong_value_is_named_with_the_place_that_it_came_from(tmp_path: Path) -> None:
    config = write_yaml(tmp_path, "max_turns: many\n")

    with pytest.raises(Problem) as raised:
        read_settings({}, config=config, environment={"PATIENCE": "-1"})

    assert "PATIENCE (environment)" in raised.value.message
    assert f"MAX_TURNS ({config})" in raised.value.message


def test_an_unknown_key_of_the_yaml_is_named(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="MAX_STEP "):
        read_settings({}, config=write_yaml(tmp_path, "max_step: 3\n"), environment={})


@pytest.mark.parametrize("text", ["- 1\n- 2\n", "a: [1\n"])
def test_a_file_that_holds_no_settings_is_a_problem(tmp_path: Path, text: str) -> None:
    with pytest.raises(Problem):
        read_settings({}, config=write_yaml(tmp_path, text), environment={})


def test_the_hubs_token_is_never_shown() -> None:
    settings = read_settings({}, environment={"HF_TOKEN": SECRET})

    assert settings.hf_token is not None
    assert settings.hf_token.get_secret_value() == SECRET
    assert SECRET not in f"{settings!r} {settings} {json.dumps(settings.shown())} {settings.parameters()}"


def make_checkpoints(output: Path, *steps: int) -> None:
    for step in steps:
        (output / "checkpoints" / f"global_step_{step}" / "actor").mkdir(parents=True)


def test_a_folder_with_checkpoints_refuses_a_new_run(tmp_path: Path) -> None:
    make_checkpoints(tmp_path, 2, 10)

    with pytest.raises(Problem, match="the last at step 10") as raised:
        choose_checkpoint(tmp_path, resume=False, resume_from=None, resume_best=False)

    assert "--resume" in (raised.value.hint or "")


def test_an_empty_folder_begins_a_new_run(tmp_path: Path) -> None:
    assert choose_checkpoint(tmp_path, resume=False, resume_from=None, resume_best=False) is None


@pytest.mark.parametrize(
    ("resume", "resume_from", "resume_best"),
    [(True, Path("x"), False), (True, None, True), (False, Path("x"), True)],
)
def test_ways_to_resume_exclude_each_other(
    tmp_path: Path, resume: bool, resume_from: Path | None, resume_best: bool
) -> None:
    with pytest.raises(Problem, match="mutually exclusive"):
        choose_checkpoint(tmp_path, resume=resume, resume_from=resume_from, resume_best=resume_best)


def test_nothing_to_resume_from_is_said(tmp_path: Path) -> None:
    with pytest.raises(Problem, match="contains no checkpoint"):
        choose_checkpoint(tmp_path, resume=True, resume_from=None, resume_best=False)
    with pytest.raises(Problem, match="no best checkpoint"):
        choose_checkpoint(tmp_path, resume=False, resume_from=None, resume_best=True)


def test_a_broken_checkpoint_is_refused_before_anything_is_started(tmp_path: Path) -> None:
    make_checkpoints(tmp_path, 4)

    with pytest.raises(Problem, match=r"incomplete.*Resume from another checkpoint"):
        choose_checkpoint(tmp_path, resume=True, resume_from=None, resume_best=False)


def test_a_checkpoint_is_measured_as_the_model_that_it_is(tmp_path: Path) -> None:
    state, named = tmp_path / "global_step_3", tmp_path / "checkpoint-3"
    for folder in (state / "actor" / "huggingface", named):
        folder.mkdir(parents=True)
        (folder / "config.json").write_text("{}")
    (named / "training_state.json").write_text(json.dumps({"checkpoint": str(tmp_path / "pruned since")}))

    assert locate_model(str(named), scratch=tmp_path / "scratch") == str(named)
    assert locate_model(str(state), scratch=tmp_path / "scratch") == str(state / "actor" / "huggingface")
    assert locate_model("Qwen/Qwen2.5-0.5B", scratch=tmp_path) == "Qwen/Qwen2.5-0.5B"


def test_bits_of_the_base_are_refused_with_the_reason(tmp_path: Path) -> None:
    config = tmp_path / "settings.yaml"
    config.write_text("load_in_4bit: false\nMAX_STEPS: 3\n")
    assert read_settings({}, config=config, environment={}).max_steps == 3
    config.write_text("load_in_8bit: true\n")
    with pytest.raises(Problem, match=r"load_in_8bit: verl .* no way to hold it in fewer"):
        read_settings({}, config=config, environment={})


@pytest.mark.parametrize("suffix", ["bnb-4bit", "unsloth-bnb-4bit", "GGUF", "AWQ", "GPTQ-Int4"])
def test_names_of_quantized_weights_are_refused_with_the_alternative(suffix: str) -> None:
    with pytest.raises(Problem, match=r"MODEL_NAME.*unsloth/Qwen3-32B is the same model in 16 bits"):
        read_settings({"model_name": f"unsloth/Qwen3-32B-{suffix}"}, environment={})


def test_a_mirror_with_whole_weights_and_a_folder_of_any_name_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ours" / "small-AWQ").mkdir(parents=True)

    for name in ("unsloth/Qwen3-32B", "ours/small-AWQ"):
        assert read_settings({"model_name": name}, environment={}).model_name == name


def test_a_model_of_modelscope_becomes_a_folder_and_a_missing_one_a_finding(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = StandInModelScope({"config.json": b"{}", "model.safetensors": b"w"})
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", served.url)
    monkeypatch.delenv("MODELSCOPE_API_TOKEN", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))

    def settings(model: str) -> LinkSearchSettings:
        given = {"model_name": model, "profile_db_path": tmp_path / "p.db", "output_dir": tmp_path / "run"}
        return read_settings(given, environment={})

    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(linksearch, "_ask", lambda _module, *options, **_: asked.append(options) or [])

    job = linksearch.make_job(settings("modelscope:team/tiny"))
    missing = linksearch._look(settings("modelscope:team/none"))
    served.close()

    assert (Path(job.model) / "model.safetensors").read_bytes() == b"w"
    assert "--model" not in asked[-1]
    assert [(each["part"], each["is_ok"]) for each in missing] == [("model", False)]
    assert "ModelScope has no such model" in missing[0]["message"]
