"""Checks the engine settings that a person wrote, key by key, against the engine's schema."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from trellis_contracts.recipe import Engine, Recipe

from trellis_recipes import retrieval_schema, trl_keys
from trellis_recipes.dataclass_fields import FieldType
from trellis_recipes.engine_options import Problem, find_problem, rule_of
from trellis_recipes.hydra_text import NotExpressible, text
from trellis_recipes.issues import Issue, nearest_key
from trellis_recipes.schema import EngineSchema

#: Keys that the platform itself sets, or that would move a job out of its control.
RESERVED: dict[Engine, dict[str, str]] = {
    Engine.VERL_PPO: {
        "actor_rollout_ref.model.path": "choose another model for the job",
        "actor_rollout_ref.model.tokenizer_path": "the tokenizer comes with the model",
        "actor_rollout_ref.hybrid_engine": "trainer and rollout engine share the same GPUs",
        "data.train_files": "choose another dataset for the job",
        "data.val_files": "choose another validation dataset for the job",
        "reward.custom_reward_function.path": "set the parameter 'reward'",
        "reward.custom_reward_function.name": "set the parameter 'reward'",
        "reward.custom_reward_function.reward_kwargs": "set the reward parameters",
        "ray_kwargs": "jobs run on the platform's own cluster",
        "transfer_queue.enable": "verl's trainer sets it",
        "trainer.checkpoint_callback_class": "the platform registers its own",
        "trainer.default_hdfs_dir": "checkpoints stay in the job's folder",
        "trainer.default_local_dir": "checkpoints stay in the job's folder",
        "trainer.del_local_ckpt_after_load": "checkpoints belong to the job",
        "trainer.device": "the platform selects the device",
        "trainer.experiment_name": "it is managed by the job",
        "trainer.logger": "metrics go to the platform",
        "trainer.n_gpus_per_node": "set the number of GPUs in the job's resources",
        "trainer.nnodes": "set the number of GPUs in the job's resources",
        "trainer.project_name": "it is managed by the job",
        "trainer.resume_from_path": "resume the job instead",
        "trainer.resume_mode": "resume the job instead",
        "trainer.rollout_data_dir": "the platform collects samples of the rollouts itself",
        "trainer.use_v1": "only verl's V1 trainer is supported",
        "trainer.val_only": "use an evaluation instead",
        "trainer.validation_data_dir": "the platform collects samples of the rollouts itself",
    },
    Engine.VERL_SFT: {
        "data.prompt_key": "a dataset's own columns are recognized when it is imported",
        "data.train_files": "choose another dataset for the job",
        "data.val_files": "choose another validation dataset for the job",
        "model.path": "choose another model for the job",
        "model.tokenizer_path": "the tokenizer comes with the model",
        "trainer.default_hdfs_dir": "checkpoints stay in the job's folder",
        "trainer.default_local_dir": "checkpoints stay in the job's folder",
        "trainer.device": "the platform selects the device",
        "trainer.experiment_name": "it is managed by the job",
        "trainer.logger": "metrics go to the platform",
        "trainer.n_gpus_per_node": "set the number of GPUs in the job's resources",
        "trainer.nnodes": "set the number of GPUs in the job's resources",
        "trainer.project_name": "it is managed by the job",
        "trainer.resume_from_path": "resume the job instead",
        "trainer.resume_mode": "resume the job instead",
    },
    Engine.TRL: trl_keys.RESERVED,
    Engine.RETRIEVAL: retrieval_schema.RESERVED,
}
#: Keys that compose in verl 0.9.1 but change nothing, and what to use instead; the longest prefix counts.
SILENT: dict[Engine, dict[str, str | None]] = {
    Engine.VERL_PPO: {
        "custom_reward_function": "reward.custom_reward_function",
        "reward_model": "reward.reward_model",
        "reward_model.model.path": "reward.reward_model.model_path",
        "reward_model.num_workers": "reward.num_workers",
        "reward_model.reward_kwargs": "reward.reward_kwargs",
        "reward_model.reward_manager": "reward.reward_manager.name",
        "sandbox_fusion": "reward.sandbox_fusion",
        "actor_rollout_ref.actor.grad_clip": "actor_rollout_ref.actor.optim.clip_grad",
        "actor_rollout_ref.actor.fsdp_config.dtype": "actor_rollout_ref.actor.fsdp_config.mixed_precision",
        "actor_rollout_ref.actor.fsdp_config.strategy": "actor_rollout_ref.actor.strategy",
        "critic.forward_max_token_len_per_gpu": "critic.ppo_infer_max_token_len_per_gpu",
        "critic.forward_micro_batch_size": "critic.fsdp.infer_micro_batch_size_per_gpu",
        "critic.forward_micro_batch_size_per_gpu": "critic.fsdp.infer_micro_batch_size_per_gpu",
        "critic.grad_clip": "critic.optim.clip_grad",
        "critic.ppo_max_token_len_per_gpu": "critic.ppo_infer_max_token_len_per_gpu",
        "critic.ppo_micro_batch_size_per_gpu": "critic.fsdp.micro_batch_size_per_gpu",
        "critic.use_dynamic_bsz": "critic.fsdp.use_dynamic_bsz",
    },
    Engine.VERL_SFT: {
        "engine.dtype": "engine.mixed_precision",
        "trainer.balance_batch": None,
        "data.balance_dp_token": None,
    },
    Engine.TRL: trl_keys.SILENT,
    Engine.RETRIEVAL: {},
}
#: Groups of verl's files that have alternatives, and the one in use: ``engine=fsdp`` says what is so anyway.
_GROUPS: dict[Engine, dict[str, str]] = {
    Engine.VERL_SFT: {"engine": "fsdp", "model": "hf_model", "optim": "fsdp", "profiler": "profiler"},
}
_NO_GROUP = object()
_UNKNOWN = "unknown_engine_key"
#: To find the most similar key takes 30 ms: whoever has more wrong ones took another engine's settings.
_MOST_SUGGESTIONS = 10
#: Parameters whose text reaches the engine in another form than it was written.
_KEYS_OF_TEXTS: dict[str, tuple[str, ...]] = {"lora_targets": ("lora_target_modules",)}


def check_overrides(schema: EngineSchema, overrides: Mapping[str, Any]) -> tuple[dict[str, Any], list[Issue]]:
    """Return the accepted settings by dotted key, and the errors of the others."""
    accepted: dict[str, Any] = {}
    issues: list[Issue] = []
    for key, value in _flatten(schema, overrides).items():
        if value == _GROUPS.get(schema.engine, {}).get(key, _NO_GROUP):
            continue
        unknown = sum(issue.code == _UNKNOWN for issue in issues)
        issue = _check(schema, key, value, suggests=unknown < _MOST_SUGGESTIONS)
        if issue is None:
            accepted[key] = value
        else:
            issues.append(issue)
    return accepted, issues


def check_parameter_texts(recipe: Recipe, parameters: Mapping[str, Any]) -> list[Issue]:
    """Find errors in the free texts among a recipe's parameters that reach the engine."""
    issues = []
    for parameter in recipe.parameters:
        value = parameters.get(parameter.name)
        if parameter.type != "str" or value is None:
            continue
        for key in parameter.engine_keys or _KEYS_OF_TEXTS.get(parameter.name, ()):
            problem = find_problem(recipe.engine, key, value, has_type=True)
            if problem is not None:
                issues.append(_issue(f"params.{parameter.name}", problem))
    return issues


def _flatten(schema: EngineSchema, overrides: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Flatten nested settings into dotted keys, down to where the engine takes a whole value."""
    flat: dict[str, Any] = {}
    for name, value in overrides.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and value and (schema.is_group(key) or schema.is_empty_mapping(key)):
            flat.update(_flatten(schema, value, f"{key}."))
        else:
            flat[key] = value
    return flat


def _check(schema: EngineSchema, key: str, value: Any, *, suggests: bool) -> Issue | None:
    field = f"overrides.{key}"
    reason = _longest_prefix(RESERVED[schema.engine], key)
    if reason is not None:
        message = f"'{key}' is set by the platform: {RESERVED[schema.engine][reason]}."
        return Issue(code="reserved_key", field=field, message=message)
    silent = _longest_prefix(SILENT[schema.engine], key)
    if silent is not None:
        replacement = SILENT[schema.engine][silent]
        moved = replacement + key.removeprefix(silent) if replacement else None
        if moved is not None and (schema.find(moved) is None or not _is_offered(schema.engine, moved)):
            moved = None
        hint = f"; use '{moved}'" if moved else ""
        message = f"'{key}' is accepted by the engine but has no effect{hint}."
        return Issue(code="ineffective_key", field=field, message=message, suggestion=moved)
    rule = rule_of(schema.engine, key)
    if rule is not None and rule.refused is not None:
        refused = find_problem(schema.engine, key, value, has_type=schema.has_type(key))
        if refused is not None:
            return _issue(field, refused)
    found = schema.find(key)
    if found is None:
        return _unknown(schema, key, value, suggests=suggests)
    if not (_accepts(found.type, value) or (value is None and schema.defaults_to_none(key))):
        wanted = " or ".join(sorted(found.type.scalars - {"none"})) or "group of settings"
        message = f"'{key}' takes a value of type {wanted}, not {value!r}."
        return Issue(code="wrong_type", field=field, message=message)
    try:
        text(value)
    except NotExpressible as error:
        return Issue(code="invalid_value", field=field, message=f"'{key}': {error}.")
    problem = find_problem(schema.engine, key, value, has_type=schema.has_type(key))
    return None if problem is None else _issue(field, problem)


def _issue(field: str, problem: Problem) -> Issue:
    return Issue(code=problem.code, field=field, message=problem.message, suggestion=problem.suggestion)


def _unknown(schema: EngineSchema, key: str, value: Any, *, suggests: bool) -> Issue:
    field = f"overrides.{key}"
    group = _GROUPS.get(schema.engine, {}).get(key)
    if group is not None and isinstance(value, str):
        message = f"'{key}' must be {group}: '{value}' is not installed or not supported by the platform."
        return Issue(code="unknown_choice", field=field, message=message, suggestion=group)
    if schema.is_group(key):
        message = f"'{key}' is a group of settings; set the keys in it."
        return Issue(code="wrong_type", field=field, message=message)
    suggestion = nearest_key(key, _offered_keys(schema)) if suggests else None
    hint = f" The nearest valid key is '{suggestion}'." if suggestion else ""
    message = f"Unknown engine setting '{key}'.{hint}"
    return Issue(code=_UNKNOWN, field=field, message=message, suggestion=suggestion)


@cache
def _offered_keys(schema: EngineSchema) -> frozenset[str]:
    """Return the keys that a person may set; a hint never names another."""
    return frozenset(key for key in schema.typed_keys() if _is_offered(schema.engine, key))


def _is_offered(engine: Engine, key: str) -> bool:
    if _longest_prefix(RESERVED[engine], key) or _longest_prefix(SILENT[engine], key):
        return False
    rule = rule_of(engine, key)
    return rule is None or rule.refused is None


def _longest_prefix(table: Mapping[str, Any], key: str) -> str | None:
    matches = [prefix for prefix in table if key == prefix or key.startswith(f"{prefix}.")]
    return max(matches, key=len, default=None)


def _accepts(field: FieldType, value: Any) -> bool:
    scalars = field.scalars
    if "any" in scalars:
        return True
    if value is None:
        return "none" in scalars
    if isinstance(value, bool):
        return "bool" in scalars
    if isinstance(value, int):
        return bool(scalars & {"int", "float"})
    for type_, name in ((float, "float"), (str, "str"), (list, "list"), (dict, "dict")):
        if isinstance(value, type_):
            return name in scalars
    return False
