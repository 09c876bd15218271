"""Values of the YAML of ``tune`` that can be: what others mean, verl and this platform do not do."""

from typing import Any

from trellis_recipes.quantized_keys import BITS, NO_BITS

#: What verl and this platform can do, of keys whose values other trainers have more of.
_CHOICES: dict[str, tuple[str, ...]] = {
    "algorithm.algorithm_type": ("multi_step_grpo",),
    "buffer.explorer_input.taskset.storage_type": ("file",),
    "explorer.rollout_model.tool_call_parser": ("hermes",),
    "explorer.rollout_model.dtype": ("bfloat16", "float16", "float32"),
    # Weights go to the rollout engine after every step, which all of these mean with an interval of 1.
    "synchronizer.sync_style": ("fixed", "dynamic_by_explorer", "dynamic_by_trainer"),
    "synchronizer.sync_method": ("nccl",),
    "monitor.monitor_type": ("tensorboard",),
}
#: Both read ``<think>...</think>``.
REASONING_PARSERS = ("deepseek_r1", "qwen3")
_POSITIVE = (
    "explorer.rollout_model.engine_num",
    "algorithm.repeat_times", "algorithm.optimizer.lr", "model.max_prompt_tokens",
    "model.max_response_tokens",
    "cluster.node_num", "cluster.gpu_per_node", "buffer.batch_size", "buffer.total_epochs",
    "explorer.runner_per_model", "explorer.max_timeout", "explorer.rollout_model.tensor_parallel_size",
    "synchronizer.sync_interval",
)  # fmt: skip


def find_problems(config: Any) -> list[str]:
    """List the invalid values of a ``TuneConfig``, each with its key."""
    problems = [
        f"{key} must be {' or '.join(allowed)}, not {value_of(config, key)!r}"
        for key, allowed in _CHOICES.items()
        if value_of(config, key) not in allowed
    ]
    parser = config.explorer.rollout_model.reasoning_parser
    if parser is not None and parser not in REASONING_PARSERS:
        known = " or ".join(REASONING_PARSERS)
        problems.append(f"explorer.rollout_model.reasoning_parser must be {known}, not {parser!r}")
    rollout, cluster = config.explorer.rollout_model, config.cluster
    gpus = cluster.node_num * cluster.gpu_per_node
    if rollout.engine_num * rollout.tensor_parallel_size > gpus:
        problems.append(
            f"explorer.rollout_model.engine_num ({rollout.engine_num}) times tensor_parallel_size"
            f" ({rollout.tensor_parallel_size}) is more than the {gpus} GPUs of the cluster"
        )
    problems += [
        f"{key} must be more than 0, not {value_of(config, key)}"
        for key in _POSITIVE
        if not value_of(config, key) > 0
    ]
    problems += [f"model.{key}: {NO_BITS}" for key in BITS if getattr(config.model, key)]
    names = [each.name for each in config.explorer.auxiliary_models]
    if len(set(names)) < len(names):
        problems.append(f"explorer.auxiliary_models has duplicate names: {', '.join(names)}")
    problems += [
        f"explorer.auxiliary_models.{each.name}.base_url must be an http address, not {each.base_url!r}"
        for each in config.explorer.auxiliary_models
        if not each.base_url.startswith(("http://", "https://"))
    ]
    evaluations = config.buffer.explorer_input.eval_tasksets
    problems += _find_evaluation_problems(evaluations) if len(evaluations) > 1 else []
    problems += [
        f"buffer.explorer_input.eval_tasksets.{place}.storage_type must be file, not {each.storage_type!r}"
        for place, each in enumerate(evaluations)
        if each.storage_type != "file"
    ]
    sessions = config.buffer.batch_size * config.algorithm.repeat_times
    update = config.buffer.train_batch_size
    if update is not None and (update < 1 or sessions % update or update % config.algorithm.repeat_times):
        problems.append(
            f"buffer.train_batch_size ({update}) must divide batch_size * repeat_times ({sessions}) "
            f"and be a multiple of repeat_times ({config.algorithm.repeat_times})"
        )
    return problems


def _find_evaluation_problems(evaluations: list[Any]) -> list[str]:
    """Find conflicts of several evaluations: names label their metrics, and verl samples all alike."""
    key, problems = "buffer.explorer_input.eval_tasksets", []
    names = [each.name for each in evaluations]
    if len(set(names)) < len(names):
        problems.append(f"{key} need different names, which label their metrics: {', '.join(names)}")
    problems += [
        f"{key}.{place}.name must be a name without '/', not {name!r}"
        for place, name in enumerate(names)
        if not name or "/" in name
    ]
    for option in ("temperature", "top_p"):
        values = {getattr(each.rollout_args, option) for each in evaluations}
        if len(values) > 1:
            told = ", ".join(map(str, sorted(values)))
            problems.append(
                f"{key} must have the same rollout_args.{option}, because they are sampled together: {told}"
            )
    return problems


def value_of(config: Any, dotted: str) -> Any:
    """Return the value at a dotted key."""
    for name in dotted.split("."):
        config = getattr(config, name)
    return config
