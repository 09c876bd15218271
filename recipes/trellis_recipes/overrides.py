"""Checks the engine settings that a person wrote, key by key, against the engine's schema."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

from trellis_contracts.recipe import Engine

from trellis_recipes import retrieval_schema, trl_keys
from trellis_recipes.dataclass_fields import FieldType
from trellis_recipes.hydra_text import NotExpressible, text
from trellis_recipes.issues import Issue
from trellis_recipes.schema import EngineSchema

#: Keys that the platform itself sets, or that would move a job out of its control.
RESERVED: dict[Engine, dict[str, str]] = {
    Engine.VERL_PPO: {
        "actor_rollout_ref.model.path": "choose another model for the job",
        "actor_rollout_ref.model.tokenizer_path": "the tokenizer comes with the model",
        "actor_rollout_ref.hybrid_engine": "the platform runs trainer and sampler on the same GPUs",
        "data.train_files": "choose another dataset for the job",
        "data.val_files": "choose another validation dataset for the job",
        "reward.custom_reward_function.path": "turn the knob 'reward'",
        "reward.custom_reward_function.name": "turn the knob 'reward'",
        "reward.custom_reward_function.reward_kwargs": "turn the knobs of the reward",
        "ray_kwargs": "jobs run on the platform's own cluster",
        "transfer_queue.enable": "verl's trainer sets it",
        "trainer.checkpoint_callback_class": "the platform registers its own",
        "trainer.default_hdfs_dir": "checkpoints stay in the job's folder",
        "trainer.default_local_dir": "checkpoints stay in the job's folder",
        "trainer.del_local_ckpt_after_load": "checkpoints belong to the job",
        "trainer.device": "the platform knows its device",
        "trainer.experiment_name": "it is the job's",
        "trainer.logger": "metrics go to the platform",
        "trainer.n_gpus_per_node": "set the number of GPUs in the job's resources",
        "trainer.nnodes": "set the number of GPUs in the job's resources",
        "trainer.project_name": "it is the job's",
        "trainer.resume_from_path": "resume the job instead",
        "trainer.resume_mode": "resume the job instead",
        "trainer.rollout_data_dir": "the platform collects samples of the rollouts itself",
        "trainer.use_v1": "only verl's V1 trainer is supported",
        "trainer.val_only": "use an evaluation instead",
        "trainer.validation_data_dir": "the platform collects samples of the rollouts itself",
    },
    Engine.VERL_SFT: {
        "data.train_files": "choose another dataset for the job",
        "data.val_files": "choose another validation dataset for the job",
        "model.path": "choose another model for the job",
        "model.tokenizer_path": "the tokenizer comes with the model",
        "trainer.default_hdfs_dir": "checkpoints stay in the job's folder",
        "trainer.default_local_dir": "checkpoints stay in the job's folder",
        "trainer.device": "the platform knows its device",
        "trainer.experiment_name": "it is the job's",
        "trainer.logger": "metrics go to the platform",
        "trainer.n_gpus_per_node": "set the number of GPUs in the job's resources",
        "trainer.nnodes": "set the number of GPUs in the job's resources",
        "trainer.project_name": "it is the job's",
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
#: Names of settings that make the engine read or write a file of the person's choice, load code or run
#: a command. A request must not reach beyond the data root, so they stay at the engine's defaults.
_REACHING_OUT = re.compile(
    r"(^|_)(path|file|dir|cmd|lib|module|class|cls)$|^_target_$|^trust_remote_code$|^custom_async_server$"
)


def check_overrides(schema: EngineSchema, overrides: Mapping[str, Any]) -> tuple[dict[str, Any], list[Issue]]:
    """The settings by dotted key, those with an error left out, and the errors."""
    accepted: dict[str, Any] = {}
    issues: list[Issue] = []
    for key, value in _flatten(schema, overrides).items():
        issue = _check(schema, key, value)
        if issue is None:
            accepted[key] = value
        else:
            issues.append(issue)
    return accepted, issues


def _flatten(schema: EngineSchema, overrides: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested settings as dotted keys, down to where the engine takes a whole value."""
    flat: dict[str, Any] = {}
    for name, value in overrides.items():
        key = f"{prefix}{name}"
        if isinstance(value, Mapping) and value and (schema.is_group(key) or schema.is_empty_mapping(key)):
            flat.update(_flatten(schema, value, f"{key}."))
        else:
            flat[key] = value
    return flat


def _check(schema: EngineSchema, key: str, value: Any) -> Issue | None:
    field = f"overrides.{key}"
    reason = _longest_prefix(RESERVED[schema.engine], key)
    if reason is not None:
        message = f"'{key}' is set by the platform: {RESERVED[schema.engine][reason]}."
        return Issue(code="reserved_key", field=field, message=message)
    silent = _longest_prefix(SILENT[schema.engine], key)
    if silent is not None:
        replacement = SILENT[schema.engine][silent]
        moved = replacement + key.removeprefix(silent) if replacement else None
        hint = f"; use '{moved}'" if moved else ""
        message = f"'{key}' is accepted by the engine but changes nothing{hint}."
        return Issue(code="ineffective_key", field=field, message=message, suggestion=moved)
    found = schema.find(key)
    if found is None:
        return _unknown(schema, key)
    if value not in (None, False, "") and any(_REACHING_OUT.search(name) for name in _names(key, value)):
        message = f"'{key}' would read or write files outside the platform's, or run code; it cannot be set."
        return Issue(code="reserved_key", field=field, message=message)
    if not (_accepts(found.type, value) or (value is None and schema.defaults_to_none(key))):
        wanted = " or ".join(sorted(found.type.scalars - {"none"})) or "group of settings"
        message = f"'{key}' takes a value of type {wanted}, not {value!r}."
        return Issue(code="wrong_type", field=field, message=message)
    try:
        text(value)
    except NotExpressible as error:
        return Issue(code="invalid_value", field=field, message=f"'{key}': {error}.")
    return None


def _names(key: str, value: Any) -> Iterator[str]:
    """The parts of a dotted key, and the names inside its value."""
    yield from key.split(".")
    if isinstance(value, Mapping):
        for name, item in value.items():
            yield from _names(str(name), item)
    elif isinstance(value, list):
        for item in value:
            yield from _names("", item)


def _unknown(schema: EngineSchema, key: str) -> Issue:
    if schema.is_group(key):
        message = f"'{key}' is a group of settings; set the keys in it."
        return Issue(code="wrong_type", field=f"overrides.{key}", message=message)
    suggestion = schema.nearest(key)
    hint = f" The nearest valid key is '{suggestion}'." if suggestion else ""
    return Issue(
        code="unknown_engine_key",
        field=f"overrides.{key}",
        message=f"The engine has no setting '{key}'.{hint}",
        suggestion=suggestion,
    )


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
