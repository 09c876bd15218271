"""The YAML of ``tune``: its keys, its mistakes, and the run of verl that it asks for (C2, C3)."""

import logging
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml
from trellis_recipes.compose import ComposeRequest, Composition, compose
from trellis_train.agents.tune import mapping
from trellis_train.agents.tune.mapping import PARAMETERS, SETTINGS, MappedJob, map_config
from trellis_train.agents.tune.settings import TuneConfig, load_config, read_config
from trellis_train.engines.hydra_config import CONFIG_NAME, compose_schema

REQUIRED = {"model": {"model_path": "/model"}, "buffer": {"explorer_input": {"taskset": {"path": "/tasks"}}}}
FULL = """
project: lab
name: maths
checkpoint_root_dir: /runs
algorithm: {algorithm_type: multi_step_grpo, repeat_times: 4, optimizer: {lr: 3.0e-5}}
model:
  {model_path: /models/qwen, max_prompt_tokens: 300, max_response_tokens: 500, max_model_len: 900,
  temperature: 1.0, top_p: 1.0, load_in_4bit: false, load_in_8bit: false}
cluster: {node_num: 1, gpu_per_node: 2}
buffer:
  total_epochs: 2
  total_steps: 50
  batch_size: 16
  train_batch_size: 32
  explorer_input:
    taskset:
      name: train
      storage_type: file
      path: /data/train.jsonl
      subset_name: main
      split: train
      format: {prompt_key: problem, response_key: solution}
      rollout_args: {temperature: 0.9, top_p: 0.95, max_tokens: 120, logprobs: 0}
    eval_tasksets:
      - {name: eval, path: /data/eval.jsonl, rollout_args: {temperature: 0.1}}
explorer:
  runner_per_model: 6
  max_timeout: 120
  eval_interval: 5
  rollout_model:
    engine_num: 2
    tensor_parallel_size: 1
    enable_prefix_caching: false
    enforce_eager: true
    enable_openai_api: true
    enable_history: true
    enable_auto_tool_choice: true
    tool_call_parser: hermes
    tool_template: model
    reasoning_parser: null
    enable_thinking: false
    dtype: bfloat16
    seed: 3
  auxiliary_models: []
synchronizer: {sync_style: fixed, sync_method: nccl, sync_interval: 1, sync_timeout: 60}
trainer:
  {save_interval: 10, use_dynamic_bsz: true, max_token_len_per_gpu: 2048, ulysses_sequence_parallel_size: 1}
monitor: {monitor_type: tensorboard}
"""


def test_the_schema_has_exactly_the_keys_and_defaults_that_are_promised() -> None:
    config, _ = read_config(REQUIRED)
    assert (config.algorithm.algorithm_type, config.algorithm.repeat_times) == ("multi_step_grpo", 8)
    assert config.explorer.runner_per_model == 16
    assert config.explorer.rollout_model.tool_call_parser == "hermes"
    full = yaml.safe_load(FULL)
    # Names of environments are a person's own.
    assert list_leaves(TuneConfig) == {*leaves_of(full), "environments"}


def list_leaves(cls: Any, prefix: str = "") -> set[str]:
    found = set()
    for field in fields(cls):
        nested = field.default_factory
        if is_dataclass(nested):
            found |= list_leaves(nested, f"{prefix}{field.name}.")
        else:
            found.add(f"{prefix}{field.name}")
    return found


def leaves_of(tree: dict[str, Any], prefix: str = "") -> list[str]:
    return [
        leaf
        for name, value in tree.items()
        for leaf in (leaves_of(value, f"{prefix}{name}.") if isinstance(value, dict) else [f"{prefix}{name}"])
    ]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"algorithm": {"repeat_time": 3}}, "algorithm.repeat_time"),
        ({"modle": {}}, "modle"),
        ({"algorithm": {"repeat_times": "many"}}, "algorithm.repeat_times"),
        ({"explorer": {"rollout_model": {"dtype": "int4"}}}, "explorer.rollout_model.dtype"),
        ({"algorithm": {"repeat_times": 0}}, "algorithm.repeat_times"),
        (
            {"buffer": {**REQUIRED["buffer"], "batch_size": 4, "train_batch_size": 12}},
            "buffer.train_batch_size",
        ),
        ({"model": {}}, "model.model_path"),
        ({"buffer": {"explorer_input": {"taskset": {"path": "x"}, "eval_tasksets": [{"pth": 1}]}}}, "pth"),
        ({"explorer": 3}, "Explorer"),
    ],
)
def test_a_mistake_is_refused_by_name(change: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=r"^Invalid configuration: ") as caught:
        read_config({**REQUIRED, **change})
    assert named in str(caught.value)


@pytest.mark.parametrize("content", ["a: [", "- 1\n- 2", "just text", ""])
def test_a_file_that_is_no_configuration_is_refused(tmp_path: Path, content: str) -> None:
    file = tmp_path / "tune.yaml"
    file.write_text(content)
    with pytest.raises(ValueError, match=r"^Invalid configuration: "):
        load_config(file)
    with pytest.raises(ValueError, match="file not found"):
        load_config(tmp_path / "none.yaml")


def map_full(tmp_path: Path, platform: str = "cpu") -> MappedJob:
    file = tmp_path / "tune.yaml"
    file.write_text(FULL)
    return map_config(*load_config(file), platform=platform)


def compose_job(job: MappedJob, platform: str) -> Composition:
    return compose(
        ComposeRequest(
            recipe=job.recipe,
            params={**job.params, "workflow": "wfl_1"},
            overrides=job.overrides,
            platform=platform,
            gpus=job.gpus,
            model_path=job.model,
            train_path="/prepared/train.parquet",
            validation_path="/prepared/validation.parquet" if job.validation else None,
            checkpoint_dir="/checkpoints",
            seed=job.seed,
        )
    )


@pytest.mark.parametrize("platform", ["cpu", "cuda"])
def test_the_mapped_configuration_is_one_of_the_installed_verl(tmp_path: Path, platform: str) -> None:
    composition = compose_job(map_full(tmp_path, platform), platform)

    assert composition.errors == []
    config = compose_schema(CONFIG_NAME, composition.engine_overrides)
    rollout, actor, data = config.actor_rollout_ref.rollout, config.actor_rollout_ref.actor, config.data
    assert (rollout.n, rollout.temperature, rollout.top_p, rollout.max_model_len) == (4, 0.9, 0.95, 900)
    assert rollout.val_kwargs.temperature == 0.1
    assert rollout.enable_prefix_caching is False
    assert rollout.dtype == ("bfloat16" if platform == "cuda" else "float32")
    assert (data.train_batch_size, data.max_prompt_length, data.max_response_length) == (16, 300, 500)
    assert (actor.ppo_mini_batch_size, actor.optim.lr, actor.ppo_max_token_len_per_gpu) == (8, 3e-5, 2048)
    assert (config.trainer.total_training_steps, config.trainer.save_freq, config.trainer.test_freq) == (
        50,
        10,
        5,
    )
    assert config.algorithm.adv_estimator == "grpo"


def test_every_mapped_parameter_and_setting_reaches_the_job(tmp_path: Path) -> None:
    job = map_full(tmp_path, "cuda")
    assert set(PARAMETERS.values()) <= set(job.params)
    assert set(SETTINGS.values()) == set(job.overrides)
    assert job.params["runners"] == 6
    assert job.params["session_timeout"] == 120
    assert job.params["reply_tokens"] == 120
    assert job.folder == "/runs/lab/maths"
    assert job.train.columns == {"prompt": "problem", "answer": "solution"}
    assert job.gpus == 2


def test_keys_without_effect_are_named_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    mapping._warned.clear()
    with caplog.at_level(logging.WARNING):
        job = map_full(tmp_path)
        map_full(tmp_path)
    (message,) = caplog.messages
    assert "explorer.rollout_model.enable_history" in message
    assert "synchronizer.sync_timeout" in message
    assert "algorithm.repeat_times" not in message
    assert message.endswith(", ".join(job.unused))
