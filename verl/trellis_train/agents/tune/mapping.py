"""The YAML of ``tune`` in the terms of the recipe ``tune``, which brings it to verl."""

import logging
from dataclasses import dataclass, field
from typing import Any

from trellis_train.agents.tune.settings import Taskset, TuneConfig

log = logging.getLogger(__name__)
#: The recipe's parameter for each key that has one.
PARAMETERS = {
    "algorithm.repeat_times": "group_size",
    "algorithm.optimizer.lr": "learning_rate",
    "model.max_prompt_tokens": "max_prompt_length",
    "model.max_response_tokens": "max_response_length",
    "buffer.total_epochs": "epochs",
    "buffer.total_steps": "total_steps",
    "buffer.batch_size": "batch_size",
    "buffer.explorer_input.taskset.rollout_args.temperature": "temperature",
    "buffer.explorer_input.taskset.rollout_args.top_p": "top_p",
    "buffer.explorer_input.taskset.rollout_args.max_tokens": "reply_tokens",
    "explorer.runner_per_model": "runners",
    "explorer.max_timeout": "session_timeout",
    "explorer.eval_interval": "validate_every",
    "explorer.rollout_model.tensor_parallel_size": "tensor_parallel",
    "explorer.rollout_model.seed": "seed",
    "explorer.rollout_model.tool_template": "tool_template",
    "explorer.rollout_model.reasoning_parser": "reasoning_parser",
    "trainer.save_interval": "save_every",
    "trainer.use_dynamic_bsz": "dynamic_batch",
    "trainer.max_token_len_per_gpu": "max_tokens_per_gpu",
}
_ACTOR, _ROLLOUT = "actor_rollout_ref.actor", "actor_rollout_ref.rollout"
#: An argument of chat templates that know it.
THINKING_SETTING = "data.apply_chat_template_kwargs.enable_thinking"
#: verl's own keys, for what a file sets (the recipe decides for what it leaves out).
SETTINGS = {
    "model.max_model_len": f"{_ROLLOUT}.max_model_len",
    "explorer.rollout_model.enable_prefix_caching": f"{_ROLLOUT}.enable_prefix_caching",
    "explorer.rollout_model.enforce_eager": f"{_ROLLOUT}.enforce_eager",
    "explorer.rollout_model.dtype": f"{_ROLLOUT}.dtype",
    "explorer.rollout_model.enable_thinking": THINKING_SETTING,
    "trainer.ulysses_sequence_parallel_size": f"{_ACTOR}.fsdp_config.ulysses_sequence_parallel_size",
}
#: Of a CPU's rollout engine: it has one way to run.
_NOT_ON_CPU = ("explorer.rollout_model.dtype", "explorer.rollout_model.enforce_eager")
#: Read elsewhere in ``map_config``.
_OTHERS = (
    "model.load_in_4bit", "model.load_in_8bit", "model.temperature", "model.top_p",
    "buffer.explorer_input.taskset.subset_name", "buffer.explorer_input.taskset.split",
    "explorer.rollout_model.engine_num", "synchronizer.sync_interval", "synchronizer.sync_method",
    "monitor.monitor_type",
    "project", "name", "checkpoint_root_dir", "algorithm.algorithm_type", "model.model_path",
    "cluster.node_num", "cluster.gpu_per_node", "buffer.train_batch_size",
    "buffer.explorer_input.eval_tasksets",
    "buffer.explorer_input.taskset.path", "buffer.explorer_input.taskset.storage_type",
    "buffer.explorer_input.taskset.format.prompt_key", "buffer.explorer_input.taskset.format.response_key",
    "explorer.rollout_model.tool_call_parser", "synchronizer.sync_style", "explorer.auxiliary_models",
)  # fmt: skip
_warned: set[str] = set()


@dataclass(frozen=True)
class MappedRows:
    """Rows of questions and answers in a file."""

    path: str
    columns: dict[str, str]
    #: Of a folder or a dataset of the hub.
    subset: str | None = None
    split: str = "train"


@dataclass(frozen=True)
class MappedJob:
    """A job of the recipe ``tune``."""

    folder: str
    model: str
    train: MappedRows
    validation: MappedRows | None
    params: dict[str, Any]
    overrides: dict[str, Any]
    seed: int
    gpus: int
    #: Folders of environments, and endpoints of other models, by the workflow's names for them.
    environments: dict[str, str] = field(default_factory=dict)
    auxiliary_models: dict[str, dict[str, Any]] = field(default_factory=dict)
    #: Event files of TensorBoard are written beside the metrics.
    has_event_files: bool = False
    recipe: str = "tune"
    #: Keys that the file sets and nothing here uses.
    unused: list[str] = field(default_factory=list)


def map_config(config: TuneConfig, set_keys: frozenset[str], *, platform: str) -> MappedJob:
    """The job that a configuration asks for; a warning, once, names the keys that nothing uses."""
    values = {key: _value(config, key) for key in (*PARAMETERS, *SETTINGS)}
    params = {parameter: values[key] for key, parameter in PARAMETERS.items()}
    params["reasoning_parser"] = params["reasoning_parser"] or "none"
    overrides = {
        setting: values[key]
        for key, setting in SETTINGS.items()
        if key in set_keys and values[key] is not None and not (platform == "cpu" and key in _NOT_ON_CPU)
    }
    sessions = config.buffer.train_batch_size
    params["mini_batch_size"] = (
        config.buffer.batch_size if sessions is None else sessions // config.algorithm.repeat_times
    )
    tasksets = config.buffer.explorer_input.eval_tasksets
    validation = tasksets[0] if tasksets else None
    if validation is None:
        # Tasks are held out only where a file says which.
        params |= {"validation_rows": 0, "validate_before": False, "validate_every": 0}
    else:
        params["validation_temperature"] = validation.rollout_args.temperature
    unused = _find_unused(set_keys, platform)
    warn_unused(unused)
    return MappedJob(
        folder="/".join((config.checkpoint_root_dir, config.project, config.name)),
        model=config.model.model_path,
        train=_rows(config.buffer.explorer_input.taskset),
        validation=None if validation is None else _rows(validation),
        params=params,
        overrides=overrides,
        seed=config.explorer.rollout_model.seed,
        gpus=config.cluster.node_num * config.cluster.gpu_per_node,
        environments=dict(config.environments),
        has_event_files="monitor.monitor_type" in set_keys,
        auxiliary_models={
            each.name: {name: value for name, value in vars(each).items() if name != "name"}
            for each in config.explorer.auxiliary_models
        },
        unused=unused,
    )


def warn_unused(keys: list[str]) -> None:
    """Name keys that were accepted and change nothing; each once a process."""
    new = [key for key in keys if key not in _warned]
    if new:
        _warned.update(new)
        log.warning("Accepted but has no effect here: %s", ", ".join(new))


def _find_unused(set_keys: frozenset[str], platform: str) -> list[str]:
    used = {*PARAMETERS, *SETTINGS, *_OTHERS}
    ignored = set(_NOT_ON_CPU) if platform == "cpu" else set()
    named = {key for key in set_keys if key.startswith("environments")}
    return sorted(key for key in set_keys - named if key not in used or key in ignored)


def _rows(taskset: Taskset) -> MappedRows:
    keys = taskset.format
    columns = {"prompt": keys.prompt_key, "answer": keys.response_key}
    return MappedRows(taskset.path, columns, taskset.subset_name, taskset.split)


def _value(config: Any, dotted: str) -> Any:
    for name in dotted.split("."):
        config = getattr(config, name)
    return config
