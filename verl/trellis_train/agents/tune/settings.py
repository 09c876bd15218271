"""The YAML of ``tune``: its keys, types and defaults.

A key that is not here and a value of another type are refused, each with its place. What verl has no
use for is accepted, because such files come from other trainers, and named once (``mapping``).
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml
from omegaconf import MISSING, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from trellis_train.agents.tune.choices import find_problems


@dataclass
class Optimizer:
    lr: float = 1.0e-6


@dataclass
class Algorithm:
    algorithm_type: str = "multi_step_grpo"
    #: Sessions to each task.
    repeat_times: int = 8
    optimizer: Optimizer = field(default_factory=Optimizer)


@dataclass
class Model:
    model_path: str = MISSING
    max_prompt_tokens: int = 2048
    max_response_tokens: int = 2048
    #: Of one branch: prompt and everything after it. None: the two together.
    max_model_len: int | None = None
    #: Of sampling, where a taskset says nothing of it.
    temperature: float | None = None
    top_p: float | None = None
    #: Taken from files that have them, as false.
    load_in_4bit: bool = False
    load_in_8bit: bool = False


@dataclass
class Cluster:
    node_num: int = 1
    gpu_per_node: int = 1


@dataclass
class Format:
    prompt_key: str = "question"
    response_key: str = "answer"


@dataclass
class RolloutArgs:
    temperature: float = 1.0
    top_p: float = 1.0
    max_tokens: int | None = None
    logprobs: int = 0


@dataclass
class Taskset:
    name: str = "taskset"
    #: ``file``: JSON lines or Parquet, a folder of them, or a dataset of the hub.
    storage_type: str = "file"
    path: str = MISSING
    #: Of a dataset of the hub or a folder.
    subset_name: str | None = None
    split: str = "train"
    format: Format = field(default_factory=Format)
    rollout_args: RolloutArgs = field(default_factory=RolloutArgs)


@dataclass
class ExplorerInput:
    taskset: Taskset = field(default_factory=Taskset)
    eval_tasksets: list[Taskset] = field(default_factory=list)


@dataclass
class Buffer:
    total_epochs: int = 1
    total_steps: int | None = None
    #: Tasks of a step.
    batch_size: int = 32
    #: Sessions of one update; None: all of a step.
    train_batch_size: int | None = None
    explorer_input: ExplorerInput = field(default_factory=ExplorerInput)


@dataclass
class RolloutModel:
    #: Engines share the GPUs with the trainer, so their number follows from those (``mapping`` says it).
    engine_num: int = 1
    tensor_parallel_size: int = 1
    enable_prefix_caching: bool = True
    enforce_eager: bool = False
    enable_openai_api: bool = True
    enable_history: bool = True
    enable_auto_tool_choice: bool = True
    tool_call_parser: str = "hermes"
    #: ``hermes`` puts tools into a chat template that shows none.
    tool_template: str = "model"
    #: Takes what stands before ``</think>`` out of a reply's text.
    reasoning_parser: str | None = None
    #: Handed to the chat template; None: as the template has it.
    enable_thinking: bool | None = None
    dtype: str = "bfloat16"
    seed: int = 42


@dataclass
class AuxiliaryModel:
    """Another model that the workflow calls: an endpoint with OpenAI's protocol, which is there already."""

    name: str = MISSING
    base_url: str = MISSING
    model: str = MISSING
    #: Environment variable that holds the key; None for an endpoint without one.
    key_variable: str | None = None
    timeout_s: float = 600.0


@dataclass
class Explorer:
    #: Sessions that run at a time.
    runner_per_model: int = 16
    #: Seconds that a session may take.
    max_timeout: float = 900.0
    eval_interval: int = 100
    rollout_model: RolloutModel = field(default_factory=RolloutModel)
    auxiliary_models: list[AuxiliaryModel] = field(default_factory=list)


@dataclass
class Synchronizer:
    sync_style: str = "fixed"
    sync_method: str = "nccl"
    #: Of steps; weights are handed over after every one (``mapping`` says it of more).
    sync_interval: int = 1
    sync_timeout: float = 3600.0


@dataclass
class Trainer:
    save_interval: int = 100
    use_dynamic_bsz: bool = True
    max_token_len_per_gpu: int = 16384
    ulysses_sequence_parallel_size: int = 1


@dataclass
class Monitor:
    monitor_type: str = "tensorboard"


@dataclass
class TuneConfig:
    project: str = "trellis"
    name: str = "tune"
    checkpoint_root_dir: str = "checkpoints"
    algorithm: Algorithm = field(default_factory=Algorithm)
    model: Model = field(default_factory=Model)
    cluster: Cluster = field(default_factory=Cluster)
    buffer: Buffer = field(default_factory=Buffer)
    explorer: Explorer = field(default_factory=Explorer)
    synchronizer: Synchronizer = field(default_factory=Synchronizer)
    trainer: Trainer = field(default_factory=Trainer)
    monitor: Monitor = field(default_factory=Monitor)
    #: Folders of environments whose tools the workflow calls, by its names for them.
    environments: dict[str, str] = field(default_factory=dict)


def load_config(path: Path | str) -> tuple[TuneConfig, frozenset[str]]:
    """Load a configuration file; also return the dotted keys it sets. Raises ``ValueError``."""
    try:
        written = OmegaConf.load(path)
    except FileNotFoundError:
        raise ValueError(f"Invalid configuration: file not found: {path}") from None
    except (OSError, OmegaConfBaseException, ValueError, yaml.YAMLError) as error:
        raise ValueError(f"Invalid configuration: {path} cannot be read ({_first_line(error)})") from error
    return read_config(written)


def read_config(written: Any) -> tuple[TuneConfig, frozenset[str]]:
    """Parse a mapping as a configuration; also return the dotted keys it sets. Raises ``ValueError``."""
    try:
        plain = OmegaConf.to_container(OmegaConf.create(written), resolve=False)
        if not isinstance(plain, dict):
            raise ValueError("the file must contain keys with values")
        merged = OmegaConf.merge(OmegaConf.structured(TuneConfig), plain)
        config = OmegaConf.to_object(merged)
    except (OmegaConfBaseException, ValueError, AssertionError, TypeError) as error:
        raise ValueError(f"Invalid configuration: {_explain(error)}") from error
    assert isinstance(config, TuneConfig)  # noqa: S101 - what to_object makes of the schema
    set_keys = frozenset(_list_keys(plain))
    _fill_in(config, set_keys)
    if problems := find_problems(config):
        raise ValueError("Invalid configuration: " + "; ".join(problems))
    return config, set_keys


def _fill_in(config: TuneConfig, set_keys: frozenset[str]) -> None:
    """Copy values that a file sets under one key to the key where they are read."""
    model = config.model
    if model.max_model_len is not None and "model.max_prompt_tokens" not in set_keys:
        model.max_prompt_tokens = max(1, model.max_model_len - model.max_response_tokens)
    given = config.buffer.explorer_input
    tasksets = {"taskset": given.taskset}
    tasksets |= {f"eval_tasksets.{place}": each for place, each in enumerate(given.eval_tasksets)}
    for place, taskset in tasksets.items():
        for name in ("temperature", "top_p"):
            value = getattr(model, name)
            if value is not None and f"buffer.explorer_input.{place}.rollout_args.{name}" not in set_keys:
                setattr(taskset.rollout_args, name, value)


def _list_keys(tree: dict[Any, Any], prefix: str = "") -> list[str]:
    """List the dotted keys of all values; keys in a list's entries contain the entry's position."""
    keys = []
    for name, value in tree.items():
        dotted = f"{prefix}{name}"
        if isinstance(value, list) and value and all(isinstance(each, dict) for each in value):
            value = dict(enumerate(value))
        keys += _list_keys(value, f"{dotted}.") if isinstance(value, dict) else [dotted]
    return keys


def _explain(error: BaseException) -> str:
    """Return OmegaConf's message, with the key that it is about."""
    key = getattr(error, "full_key", None)
    line = _first_line(error)
    return f"{key}: {line}" if key and key not in line else line


def _first_line(error: BaseException) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
