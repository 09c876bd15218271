"""Every key of a tool-use settings file: each command uses it, refuses it, or says that it has no effect."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from pydantic import BaseModel
from trellis_api.job_pipelines.templates import list_templates
from trellis_cli import agent_train
from trellis_cli.agent_pipeline import Rows, plan_stages, refuse_local_rows
from trellis_cli.agent_settings_use import list_unused
from trellis_cli.errors import Problem
from trellis_cli.local_run import LocalOutcome
from trellis_cli.main import app
from trellis_contracts.spec import JobSpec
from trellis_recipes.tool_use_settings import ToolUseSettings
from typer.testing import CliRunner

CHAT = [{"role": "user", "content": "1+1?"}, {"role": "assistant", "content": "2"}]
PROMPT = {"data_source": "t", "prompt": CHAT[:1], "reward_model": {"ground_truth": "2"}}
ROWS: dict[str, dict[str, Any]] = {
    "sft": {"messages": CHAT},
    "dpo": {"prompt": "1+1?", "chosen": "2", "rejected": "3"},
    **dict.fromkeys(("ppo", "grpo", "retrieval"), PROMPT),
}
#: A value that differs from the default, for each key; DATA stands for a file of dialogs.
DATA = "DATA"
VALUES: dict[str, Any] = {
    "preset": "production",
    "gpus": 2,
    "sft.train_data": DATA,
    "sft.dev_data": DATA,
    "sft.task_weights": {"tool_selection": 1.0},
    "sft.base_model": "other/model",
    "sft.max_length": 100,
    "sft.lora.r": 3,
    "sft.lora.alpha": 5,
    "sft.lora.dropout": 0.4,
    "sft.lora.target_modules": ["k_proj"],
    "sft.epochs": 7,
    "sft.batch_size": 3,
    "sft.gradient_accumulation": 5,
    "sft.learning_rate": 0.7,
    "sft.warmup_ratio": 0.6,
    "sft.lr_schedule": "linear",
    "sft.quantization": "4bit",
    "sft.use_coreset_selection": True,
    "sft.coreset_target_size": 11,
    "sft.coreset_strategy": "random",
    "sft.use_online_continual": True,
    "sft.continual_buffer_size": 12,
    "sft.continual_replay_ratio": 0.9,
    "rl.algorithm": "ppo",
    "rl.dpo.quantization": "4bit",
    "rl.dpo.beta": 0.9,
    "rl.dpo.reference_free": True,
    "rl.dpo.label_smoothing": 0.2,
    "rl.dpo.loss_type": "ipo",
    "rl.ppo.kl_coef": 0.9,
    "rl.ppo.clip_range": 0.9,
    "rl.ppo.vf_coef": 0.9,
    "rl.ppo.num_rollouts": 64,
    "rl.ppo.chunk_size": 32,
    "rl.grpo.group_size": 6,
    "rl.grpo.beta": 0.9,
    "rl.grpo.use_advantage": False,
    "reward.weights": {"format": 0.9},
    "reward.penalties": {"timeout": 0.0},
    "reward.compare_arguments": False,
    "reward.run_calls": False,
    "warm_up.enabled": True,
    "warm_up.data": DATA,
    "warm_up.samples": 13,
    "warm_up.focus_tags": ["timing_decision"],
}
#: What must be on for a key to have an effect.
SWITCHES = {
    "warm_up.data": "warm_up.enabled",
    "warm_up.samples": "warm_up.enabled",
    "warm_up.focus_tags": "warm_up.enabled",
    "sft.coreset_target_size": "sft.use_coreset_selection",
    "sft.coreset_strategy": "sft.use_coreset_selection",
    "sft.continual_buffer_size": "sft.use_online_continual",
    "sft.continual_replay_ratio": "sft.use_online_continual",
}


def all_keys(part: type[BaseModel] = ToolUseSettings, place: str = "") -> Iterator[str]:
    for name, field in part.model_fields.items():
        kinds = [field.annotation, *getattr(field.annotation, "__args__", ())]
        below = next((each for each in kinds if isinstance(each, type) and issubclass(each, BaseModel)), None)
        if below is None:
            yield f"{place}{name}"
        else:
            yield from all_keys(below, f"{place}{name}.")


def settings_with(folder: Path, *keys: str, **others: Any) -> dict[str, Any]:
    rows = folder / "other.jsonl"
    rows.write_text("".join(json.dumps(ROWS["sft"]) + "\n" for _ in range(150)))
    found: dict[str, Any] = {}
    for key, value in [*((key, VALUES[key]) for key in keys), *others.items()]:
        *places, name = key.split(".")
        part = found
        for place in places:
            part = part.setdefault(place, {})
        part[name] = str(rows) if value == DATA else value
    return found


class Trainings:
    """`trellis agent train` up to the moment at which the engine would start."""

    def __init__(self, folder: Path, patched: pytest.MonkeyPatch) -> None:
        self.folder, self._specs, self._models, self._count = folder, [], [], 0
        patched.setenv("TRELLIS_PLATFORM", "cpu")
        patched.setattr(agent_train, "run_local", self._run)
        patched.setattr(agent_train, "find_model", self._find_model)
        model = folder / "model"
        model.mkdir()
        (model / "config.json").write_text("{}")

    def _run(self, spec: JobSpec, **_: object) -> LocalOutcome:
        self._specs.append(spec)
        return LocalOutcome(folder=spec.attempt_dir, outcome="succeeded", step=3, metrics={})

    def _find_model(self, given: str, **_: object) -> str:
        self._models.append(given.replace(str(self.folder / str(self._count)), ""))
        return str(self.folder / "model")

    def start(self, stage: str, settings: dict[str, Any], *options: str) -> tuple[list[Any], str]:
        """What would be trained, and all that is printed."""
        self._specs.clear()
        self._models.clear()
        self._count += 1
        config, data = self.folder / "settings.yaml", self.folder / f"{stage}.jsonl"
        config.write_text(yaml.safe_dump(settings))
        data.write_text("".join(json.dumps(ROWS[stage]) + "\n" for _ in range(200)))
        names_rows = "train_data" in settings.get("sft", {})
        command = ["agent", "train", stage, "--config", str(config), *options]
        command += [] if stage == "sft" and names_rows else ["--data", str(data)]
        result = CliRunner().invoke(app, [*command, "--output", str(self.folder / str(self._count))])
        said = " ".join(f"{result.output} {result.exception or ''}".split())
        runs = [
            (
                spec.params, spec.gpus, spec.engine_overrides, spec.train_data.row_count,
                spec.validation_data and spec.validation_data.row_count,
            )
            for spec in self._specs
        ]  # fmt: skip
        told = str(runs).replace(str(self.folder / str(self._count)), "")
        return [self._models[:], told, str(result.exception or "")], said


@pytest.fixture
def trainings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Trainings:
    return Trainings(tmp_path, monkeypatch)


def test_every_key_has_a_value_here() -> None:
    assert set(all_keys()) == set(VALUES)


def is_of_sampled_pairs(algorithm: str, key: str, is_said: bool) -> bool:
    """The reward is a parameter of every run of dpo, and has an effect on those that sample their pairs."""
    return algorithm == "dpo" and key.startswith("reward.") and is_said


@pytest.mark.parametrize("stage", list(ROWS))
def test_a_key_changes_the_training_or_is_said_to_have_no_effect(stage: str, trainings: Trainings) -> None:
    silent, without = [], {}
    for key in VALUES:
        own = {"rl.algorithm": "grpo"} if (key, stage) == ("rl.algorithm", "ppo") else {}
        switch = [SWITCHES[key]] if key in SWITCHES else []
        if str(switch) not in without:
            without[str(switch)], _ = trainings.start(stage, settings_with(trainings.folder, *switch))
        after, output = trainings.start(stage, settings_with(trainings.folder, *switch, key, **own))
        is_said = f" {key}" in output.partition("no effect:")[2]
        if (without[str(switch)] != after) == is_said and not is_of_sampled_pairs(stage, key, is_said):
            silent.append(key)

    assert silent == []


def plan(settings: ToolUseSettings) -> Any:
    template = next(each for each in list_templates() if each.id == "agent")
    names = ("", "sft", "preference", "retrieval")
    try:
        refuse_local_rows(settings)
    except Problem as problem:
        return str(problem)
    return plan_stages(
        [stage.model_dump(mode="json") for stage in template.stages],
        settings,
        base="mdl_1",
        datasets={name: Rows(f"ds_{name}") for name in names},
        preset=settings.preset,
        own={},
        limit=None,
        gpus=settings.gpus,
    )


@pytest.mark.parametrize("algorithm", ["dpo", "ppo", "grpo"])
def test_a_key_changes_the_pipeline_or_is_said_to_have_no_effect(algorithm: str, tmp_path: Path) -> None:
    silent = []
    for key in VALUES:
        switch = [SWITCHES[key]] if key in SWITCHES else []
        trained = {} if key == "rl.algorithm" else {"rl.algorithm": algorithm}
        own = {"rl.algorithm": "grpo"} if key == "rl.algorithm" else {}
        before = ToolUseSettings.model_validate(settings_with(tmp_path, *switch, **trained))
        after = ToolUseSettings.model_validate(settings_with(tmp_path, *switch, key, **trained, **own))
        is_said = any(f" {key}" in sentence for sentence in list_unused(after, "pipeline"))
        is_changed = plan(before) != plan(after)
        is_refused = key in plan(after)
        if not is_refused and is_changed == is_said and not is_of_sampled_pairs(algorithm, key, is_said):
            silent.append(key)

    assert silent == []


@pytest.mark.parametrize("key", [key for key in SWITCHES if key != "warm_up.data"])
@pytest.mark.parametrize("command", ["sft", "pipeline"])
def test_a_key_of_what_is_switched_off_names_the_switch(key: str, command: str, tmp_path: Path) -> None:
    settings = ToolUseSettings.model_validate(settings_with(tmp_path, key))

    (sentence,) = list_unused(settings, command)

    assert key in sentence
    assert f"{SWITCHES[key]}: true" in sentence


def test_rows_that_are_named_by_their_default_name_are_measured_on(
    trainings: Trainings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TRELLIS_AGENT_DATA", str(trainings.folder / "nowhere"))

    _, said = trainings.start("sft", {"sft": {"dev_data": "agent_sft:dev"}})

    assert "agent_sft:dev" in said
    assert "contains no generated data" in said


def test_a_warm_up_trains_on_the_gpus_of_the_settings(
    trainings: Trainings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_train, "require_gpus", lambda count: count)

    trainings.start("sft", {"gpus": 2, "warm_up": {"enabled": True}})

    assert [spec.gpus for spec in trainings._specs] == [2, 2]


def test_sampled_pairs_follow_the_parameters_and_the_validation_rows(
    trainings: Trainings, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def sample(module: str, options: list[str]) -> dict[str, Any]:
        del module
        asked.append(options)
        pairs = Path(options[options.index("--output") + 1])
        pairs.write_text("".join(json.dumps(ROWS["dpo"]) + "\n" for _ in range(200)))
        return {"pairs": 200, "prompts": 200}

    monkeypatch.setattr(agent_train, "run_module", sample)
    dev = trainings.folder / "dev.jsonl"
    dev.write_text("".join(json.dumps(ROWS["dpo"]) + "\n" for _ in range(9)))
    sizes = ["num_samples=3", "max_sample_tokens=40", "min_margin=0.3"]

    trainings.start("dpo", {}, "--dev-data", str(dev), *(part for each in sizes for part in ("--set", each)))

    (options,) = asked
    given = dict(zip(options[::2], options[1::2], strict=True))
    assert (given["--samples"], given["--max-tokens"], given["--min-margin"]) == ("3", "40", "0.3")
    (spec,) = trainings._specs
    assert spec.validation_data is not None
    assert spec.validation_data.row_count == 9
