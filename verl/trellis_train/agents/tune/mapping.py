"""The YAML of ``tune`` in the terms of the recipe ``tune``, which brings it to verl."""

import logging
import re
from dataclasses import dataclass, field
from typing import Any

from trellis_contracts.recipe import DataFormat

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
#: Of measuring; verl's own default where a taskset says nothing.
EVAL_TOP_P = f"{_ROLLOUT}.val_kwargs.top_p"
_EVAL = "buffer.explorer_input.eval_tasksets"
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
    _EVAL, *(
        f"{_EVAL}.{name}"
        for name in (
            "path", "storage_type", "subset_name", "split", "format.prompt_key", "format.response_key",
            "rollout_args.temperature", "rollout_args.top_p", "rollout_args.max_tokens",
        )
    ),
    "explorer.auxiliary_models",
    *(f"explorer.auxiliary_models.{name}" for name in (
        "name", "base_url", "model", "key_variable", "timeout_s",
    )),
    "buffer.explorer_input.taskset.path", "buffer.explorer_input.taskset.storage_type",
    "buffer.explorer_input.taskset.format.prompt_key", "buffer.explorer_input.taskset.format.response_key",
    "explorer.rollout_model.tool_call_parser", "synchronizer.sync_style",
)  # fmt: skip
_PLACE = re.compile(r"\.\d+(?=\.)")
_warned: set[str] = set()


@dataclass(frozen=True)
class MappedRows:
    """Rows of questions and answers in a file."""

    path: str
    columns: dict[str, str]
    #: Of a folder or a dataset of the hub.
    subset: str | None = None
    split: str = "train"
    format: DataFormat = DataFormat.PROMPT_ANSWER


@dataclass(frozen=True)
class MappedJob:
    """A job of the recipe ``tune``."""

    folder: str
    model: str
    train: MappedRows
    #: None where nothing is measured, and where ``evaluations`` are several that are not joined yet.
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
    #: Nodes that have equal shares of ``gpus``.
    nodes: int = 1
    #: Keys that the file sets and nothing here uses.
    unused: list[str] = field(default_factory=list)
    #: Several evaluations by name; of one, ``validation`` has the rows.
    evaluations: dict[str, MappedRows] = field(default_factory=dict)
    #: Sentences on values that the run does not have as the file has them.
    notes: list[str] = field(default_factory=list)


def map_config(config: TuneConfig, set_keys: frozenset[str], *, platform: str) -> MappedJob:
    """Map a configuration to a job.

    Warnings, each once, name the keys that nothing uses and say of others what the run has instead.
    """
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
    if not tasksets:
        # Tasks are held out only where a file says which.
        params |= {"validation_rows": 0, "validate_before": False, "validate_every": 0}
    else:
        # All are sampled alike (``choices``).
        sampled = tasksets[0].rollout_args
        params["validation_temperature"] = sampled.temperature
        if sampled.top_p != 1.0:
            overrides[EVAL_TOP_P] = sampled.top_p
    unused = _find_unused(config, set_keys, platform)
    notes = _find_notes(config, set_keys)
    warn_unused(unused, notes)
    return MappedJob(
        folder="/".join((config.checkpoint_root_dir, config.project, config.name)),
        model=config.model.model_path,
        train=_rows(config.buffer.explorer_input.taskset),
        validation=_rows(tasksets[0]) if len(tasksets) == 1 else None,
        evaluations={each.name: _rows(each) for each in tasksets} if len(tasksets) > 1 else {},
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
        nodes=config.cluster.node_num,
        unused=unused,
        notes=notes,
    )


def warn_unused(keys: list[str], notes: list[str]) -> None:
    """Name keys that were accepted and change nothing, and say what others become; each once a process."""
    new = [key for key in keys if key not in _warned]
    if new:
        log.warning("Accepted but has no effect here: %s", ", ".join(new))
    for note in notes:
        if note not in _warned:
            log.warning("%s", note)
    _warned.update(new, notes)


def _find_unused(config: TuneConfig, set_keys: frozenset[str], platform: str) -> list[str]:
    used = {*PARAMETERS, *SETTINGS, *_OTHERS}
    ignored = set(_NOT_ON_CPU) if platform == "cpu" else set()
    if not config.buffer.explorer_input.eval_tasksets:
        ignored.add("explorer.eval_interval")
    if not config.trainer.use_dynamic_bsz:
        ignored.add("trainer.max_token_len_per_gpu")
    if "buffer.total_steps" in set_keys and config.buffer.total_steps:
        ignored.add("buffer.total_epochs")
    if len(config.buffer.explorer_input.eval_tasksets) > 1:  # metrics bear the names
        used.add(f"{_EVAL}.name")
    named = {key for key in set_keys if key.startswith("environments")}
    return sorted(key for key in set_keys - named if _PLACE.sub("", key) not in used or key in ignored)


def _find_notes(config: TuneConfig, set_keys: frozenset[str]) -> list[str]:
    """List what the run uses in place of values that verl or this platform does not support."""
    notes = []
    interval = config.synchronizer.sync_interval
    if interval > 1:
        notes.append(
            f"synchronizer.sync_interval is {interval}, but weights are synchronized after every step: "
            "the trainer and the rollout engine take turns on the same GPUs"
        )
    rollout, cluster = config.explorer.rollout_model, config.cluster
    engines = cluster.node_num * cluster.gpu_per_node // rollout.tensor_parallel_size
    if "explorer.rollout_model.engine_num" in set_keys and rollout.engine_num != engines:
        notes.append(
            f"explorer.rollout_model.engine_num is {rollout.engine_num}, but {engines} engines run: one for "
            f"every {rollout.tensor_parallel_size} of the {cluster.node_num * cluster.gpu_per_node} GPUs "
            "(tensor_parallel_size), which they share with the trainer"
        )
    trained = config.buffer.explorer_input.taskset.rollout_args.max_tokens
    for place, taskset in enumerate(config.buffer.explorer_input.eval_tasksets):
        asked = taskset.rollout_args.max_tokens
        if f"{_EVAL}.{place}.rollout_args.max_tokens" in set_keys and asked != trained:
            limit = "none but the context's" if trained is None else trained
            notes.append(
                f"{_EVAL}.{place}.rollout_args.max_tokens is {asked}, but replies of the evaluation have the "
                f"limit of the training's (buffer.explorer_input.taskset.rollout_args.max_tokens): {limit}"
            )
    return notes


def _rows(taskset: Taskset) -> MappedRows:
    keys = taskset.format
    columns = {"prompt": keys.prompt_key, "answer": keys.response_key}
    return MappedRows(taskset.path, columns, taskset.subset_name, taskset.split)


def _value(config: Any, dotted: str) -> Any:
    for name in dotted.split("."):
        config = getattr(config, name)
    return config
