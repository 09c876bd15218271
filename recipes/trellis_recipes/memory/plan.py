"""What an engine's composed configuration means for memory, in terms that all engines share."""

from dataclasses import dataclass, replace
from typing import Any

from trellis_contracts.recipe import Engine

from trellis_recipes.checks.batches import has_critic, has_reference
from trellis_recipes.memory.settings import (
    IncompleteConfiguration,
    Tree,
    group,
    number,
    positive,
    require_groups,
    require_settings,
    sequence_parallel,
)
from trellis_recipes.trl_schema import TRAINERS

#: Bytes of an element by the names that verl, TRL and torch give its type.
ELEMENT_BYTES = {
    "fp32": 4,
    "float32": 4,
    "float": 4,
    "bf16": 2,
    "bfloat16": 2,
    "fp16": 2,
    "float16": 2,
    "half": 2,
}

_MIB = 1024**2
#: What the processes of a run hold on a CPU before the first tensor, measured as PSS (`bench memory`): our
#: supervisor and Ray's, a trainer of verl, one of TRL or of encoders, and each of the processes of an RL run.
SUPERVISOR_BYTES = 220 * _MIB
VERL_TRAINER_BYTES = 700 * _MIB
TRL_TRAINER_BYTES = 450 * _MIB
RL_PROCESS_BYTES = 450 * _MIB


@dataclass(frozen=True)
class Training:
    """How one model is trained on each GPU."""

    #: Bytes of a stored weight, and of an element of the computation.
    weight_bytes: int
    element_bytes: int
    #: GPUs over which weights, gradients and optimizer are split; 1 where each holds everything.
    shards: int
    #: Tokens of one forward and backward pass.
    tokens: int
    is_checkpointed: bool
    #: Tokens of a pass whose scores of the vocabulary are computed; None for all of them.
    logits_tokens: int | None = None
    lora_rank: int = 0
    #: Modules with an adapter; None for all linear ones.
    lora_targets: frozenset[str] | None = None
    #: In which a frozen base is held; 0 where it is not quantised.
    base_bits: int = 0
    #: Whether it scores the vocabulary (a critic or reward model gives one number instead).
    has_logits: bool = True
    #: Moved to the host while another phase runs.
    is_offloaded: bool = False
    is_optimizer_offloaded: bool = False
    #: Whether blocks are gathered from all GPUs, or cast, before they compute (FSDP).
    is_gathered: bool = False


@dataclass(frozen=True)
class Reference:
    """A frozen copy to compare with."""

    weight_bytes: int
    shards: int
    is_offloaded: bool = False


@dataclass(frozen=True)
class RolloutEngine:
    """vLLM beside the trainer."""

    element_bytes: int
    tensor_parallel: int
    #: Share of a GPU's memory that it takes; None on a CPU.
    share: float | None
    #: Space for the KV cache on a CPU platform, for each rollout engine.
    cpu_cache_bytes: int
    #: Prompts and responses of the whole run at their greatest length; None where its steps are not known.
    generated_tokens: int | None
    #: Sequences at a time, and their longest length.
    sequences: int
    max_length: int
    #: Whether it gives its memory back while the trainer computes.
    sleeps: bool
    #: Bucket in which weights are handed over, through /dev/shm on a CPU platform.
    bucket_bytes: int
    #: Whether it also holds weights in the form in which a CPU multiplies by them.
    is_packed: bool


@dataclass(frozen=True)
class Plan:
    """All models of a run."""

    platform: str
    gpus: int
    training: Training
    #: Tokens of one pass that computes log-probabilities only.
    log_prob_tokens: int = 0
    reference: Reference | None = None
    critic: Training | None = None
    rollout_engine: RolloutEngine | None = None
    #: A reward model of its own, whose size is not known here.
    has_reward_model: bool = False
    #: Held by its processes before the first tensor, on a CPU platform.
    library_bytes: int = 0
    evaluates: bool = False


#: Groups of settings that are read, by engine.
_GROUPS = {
    Engine.VERL_PPO: (
        "algorithm",
        "data",
        "actor_rollout_ref.actor.fsdp_config",
        "actor_rollout_ref.rollout",
        "actor_rollout_ref.ref.fsdp_config",
        "actor_rollout_ref.model",
        "critic.fsdp",
        "critic.model",
        "reward",
        "trainer",
    ),
    Engine.VERL_SFT: ("data", "engine", "model"),
}
#: Single settings that tell which models there are, by engine.
_SETTINGS = {
    Engine.VERL_PPO: (
        "algorithm.adv_estimator",
        "algorithm.use_kl_in_reward",
        "actor_rollout_ref.actor.use_kl_loss",
        "critic.enable",
    ),
}


def read_plan(
    engine: Engine, config: Tree, *, recipe: str, platform: str, gpus: int, env: dict[str, str]
) -> Plan:
    """Read the memory plan of a configuration; raises ``IncompleteConfiguration`` for bad settings."""
    require_groups(config, _GROUPS.get(engine, ()))
    require_settings(config, _SETTINGS.get(engine, ()))
    if engine is Engine.VERL_PPO:
        return _read_ppo(config, platform, gpus, env)
    if engine is Engine.VERL_SFT:
        return _read_sft(config, platform, gpus)
    if engine is Engine.RETRIEVAL:
        return _read_retrieval(config, platform, gpus)
    return _read_trl(config, recipe, platform, gpus)


def _element(name: Any, fallback: int) -> int:
    return ELEMENT_BYTES.get(str(name).rpartition(".")[2], fallback)


def _targets(value: Any) -> frozenset[str] | None:
    names = [str(name) for name in value] if isinstance(value, list) else [str(value)] if value else []
    return None if not names or "all-linear" in names else frozenset(names)


def _verl_training(model: Tree, engine: Tree, *, gpus: int, tokens: int, has_logits: bool = True) -> Training:
    """Read verl's FSDP engine: weights in ``model_dtype``, compute in ``mixed_precision``, else bfloat16."""
    precision = group(engine, "mixed_precision")
    size = positive(engine.get("fsdp_size"), gpus)
    return Training(
        weight_bytes=_element(engine.get("model_dtype"), 4),
        element_bytes=_element(precision.get("param_dtype"), 2),
        shards=max(1, min(size, gpus)),
        tokens=max(1, tokens),
        is_checkpointed=bool(model.get("enable_gradient_checkpointing")),
        lora_rank=positive(model.get("lora_rank"), 0),
        lora_targets=_targets(model.get("target_modules")),
        has_logits=has_logits,
        is_offloaded=bool(engine.get("param_offload") or engine.get("offload_policy")),
        is_optimizer_offloaded=bool(engine.get("optimizer_offload") or engine.get("offload_policy")),
        is_gathered=True,
    )


def _read_ppo(config: Tree, platform: str, gpus: int, env: dict[str, str]) -> Plan:
    parts = config["actor_rollout_ref"]
    actor, rollout, ref = parts["actor"], parts["rollout"], parts["ref"]
    data = config["data"]
    length = int(number(data, "max_prompt_length") + number(data, "max_response_length"))
    samples = positive(rollout.get("n"), 1)
    mini_batch = max(1, int(number(actor, "ppo_mini_batch_size")) * samples // gpus)
    shared_by = sequence_parallel(actor, actor["fsdp_config"])
    tokens = _tokens(
        actor,
        "ppo_micro_batch_size_per_gpu",
        "ppo_max_token_len_per_gpu",
        length,
        mini_batch,
        shared=shared_by,
    )
    batch = max(1, int(number(data, "train_batch_size")) * samples // gpus)
    log_prob_tokens = _tokens(
        rollout,
        "log_prob_micro_batch_size_per_gpu",
        "log_prob_max_token_len_per_gpu",
        length,
        batch,
        shared=shared_by,
    )
    training = _verl_training(parts["model"], actor["fsdp_config"], gpus=gpus, tokens=tokens)
    shared = _share_prompts(config, tokens=tokens, length=length) if platform == "cpu" else None
    if shared is not None:
        training = replace(training, tokens=shared.tokens, logits_tokens=shared.response_tokens)
        log_prob_tokens = shared.tokens * max(1, log_prob_tokens // max(1, tokens))
    reference = None
    # With an adapter, the reference is the base under it.
    if has_reference(config) and not training.lora_rank:
        own = ref["fsdp_config"]
        reference = Reference(
            weight_bytes=_element(own.get("model_dtype"), 4),
            shards=training.shards,
            is_offloaded=bool(own.get("param_offload")),
        )
    return Plan(
        platform=platform,
        gpus=gpus,
        training=training,
        log_prob_tokens=log_prob_tokens,
        reference=reference,
        critic=_read_critic(config, gpus, length, samples),
        rollout_engine=_read_rollout_engine(config, platform, env, length, batch),
        has_reward_model=_has_reward_model(config["reward"]),
        library_bytes=(4 + 3 * gpus) * RL_PROCESS_BYTES,
    )


@dataclass(frozen=True)
class _SharedPass:
    """A pass in which the prompt of a group is computed once (docs/adr/0021-prompts-once-a-pass.md)."""

    tokens: int
    response_tokens: int


def _share_prompts(config: Tree, *, tokens: int, length: int) -> _SharedPass | None:
    """Return the tokens of a pass on a CPU with shared prompts; None where whole rows are passed."""
    parts, data = config["actor_rollout_ref"], config["data"]
    group, model = positive(parts["rollout"].get("n"), 1), parts["model"]
    if group == 1 or model.get("enable_gradient_checkpointing") or model.get("use_remove_padding"):
        return None
    rows = max(1, tokens // length)
    prompts = -(-rows // group)
    response_tokens = rows * int(number(data, "max_response_length"))
    return _SharedPass(prompts * int(number(data, "max_prompt_length")) + response_tokens, response_tokens)


def _has_reward_model(reward: Tree) -> bool:
    """Tell whether there is a reward model: verl's own, or ours as a term of the mixture."""
    terms = group(group(reward, "custom_reward_function"), "reward_kwargs").get("rewards")
    names = [term.get("name") for term in terms if isinstance(term, dict)] if isinstance(terms, list) else []
    return "reward_model" in names or bool(group(reward, "reward_model").get("enable"))


def _tokens(
    part: Tree, size_key: str, tokens_key: str, length: int, sequences: int, *, shared: int = 1
) -> int:
    """Return the tokens of one pass on one GPU: a dynamic batch's limit, or else sequences of full length.

    ``shared`` GPUs divide each sequence between them. The bound holds for each of them; sequences are counted
    for all of them together.
    """
    is_dynamic = part.get("use_dynamic_bsz") or part.get("log_prob_use_dynamic_bsz")
    if is_dynamic:
        return int(max(length // shared, min(positive(part.get(tokens_key), length), sequences * length)))
    return int(min(positive(part.get(size_key), sequences), sequences * shared) * length // shared)


def _read_critic(config: Tree, gpus: int, length: int, samples: int) -> Training | None:
    if not has_critic(config):
        return None
    critic, engine = config["critic"], config["critic"]["fsdp"]
    # verl reads the sizes of the critic's passes from here, whatever is written beside it.
    passes = {"use_dynamic_bsz": True, **engine, "tokens": critic.get("ppo_infer_max_token_len_per_gpu")}
    sequences = max(1, positive(critic.get("ppo_mini_batch_size"), 1) * samples // gpus)
    shared = sequence_parallel(critic, engine)
    tokens = _tokens(passes, "micro_batch_size_per_gpu", "tokens", length, sequences, shared=shared)
    return _verl_training(critic["model"], engine, gpus=gpus, tokens=tokens, has_logits=False)


def _read_rollout_engine(
    config: Tree, platform: str, env: dict[str, str], length: int, batch: int
) -> RolloutEngine:
    rollout, steps = config["actor_rollout_ref"]["rollout"], config["trainer"].get("total_training_steps")
    is_cpu = platform == "cpu"
    parallel = positive(rollout.get("tensor_model_parallel_size"), 1)
    checkpoint_engine = group(rollout, "checkpoint_engine")
    return RolloutEngine(
        element_bytes=_element(rollout.get("dtype"), 2),
        tensor_parallel=parallel,
        share=None if is_cpu else number(rollout, "gpu_memory_utilization"),
        cpu_cache_bytes=int(float(env.get("VLLM_CPU_KVCACHE_SPACE", "1")) * 1024**3) if is_cpu else 0,
        generated_tokens=batch * length * steps if isinstance(steps, int) else None,
        sequences=min(positive(rollout.get("max_num_seqs"), 256), batch * parallel),
        max_length=positive(rollout.get("max_model_len"), length),
        sleeps=bool(rollout.get("free_cache_engine")) and not is_cpu,
        bucket_bytes=positive(checkpoint_engine.get("update_weights_bucket_megabytes"), 512) * 1024**2,
        is_packed=is_cpu and bool(rollout.get("enforce_eager")),
    )


def _read_sft(config: Tree, platform: str, gpus: int) -> Plan:
    data, engine = config["data"], config["engine"]
    length = positive(data.get("max_length"), 1024)
    sequences = max(1, positive(data.get("train_batch_size"), gpus) // gpus)
    shared = sequence_parallel({}, engine)
    tokens = _tokens(
        data, "micro_batch_size_per_gpu", "max_token_len_per_gpu", length, sequences, shared=shared
    )
    return Plan(
        platform=platform,
        gpus=gpus,
        training=_verl_training(config["model"], engine, gpus=gpus, tokens=tokens),
        library_bytes=SUPERVISOR_BYTES + gpus * VERL_TRAINER_BYTES,
        evaluates=bool(data.get("val_files")),
    )


def _read_trl(config: Tree, recipe: str, platform: str, gpus: int) -> Plan:
    """Read a plan for TRL: each GPU holds everything (no sharding) and all texts of a row share one pass."""
    if recipe not in TRAINERS:
        raise IncompleteConfiguration(f"nothing is known of the trainer of '{recipe}'")
    trainer, is_adapter = TRAINERS[recipe], bool(config.get("use_peft"))
    # No model at the start is kept where its scores are computed beforehand, or where it is the base
    # under an adapter.
    compares = trainer.has_reference and not config.get("precompute_ref_log_probs")
    weight = _element(config.get("dtype"), 4)
    length = positive(config.get("max_length"), 1024)
    tokens = trainer.texts_per_row * positive(config.get("per_device_train_batch_size"), 1) * length
    training = Training(
        weight_bytes=weight,
        element_bytes=2 if config.get("bf16") or config.get("fp16") else weight,
        shards=1,
        tokens=tokens,
        is_checkpointed=bool(config.get("gradient_checkpointing")),
        lora_rank=positive(config.get("lora_r"), 0) if is_adapter else 0,
        lora_targets=_targets(config.get("lora_target_modules")),
        base_bits=4 if config.get("load_in_4bit") else 8 if config.get("load_in_8bit") else 0,
        has_logits=not trainer.is_scorer,
    )
    return Plan(
        platform=platform,
        gpus=gpus,
        training=training,
        log_prob_tokens=tokens if compares else 0,
        reference=Reference(weight, 1) if compares and not is_adapter else None,
        library_bytes=SUPERVISOR_BYTES + gpus * TRL_TRAINER_BYTES,
        evaluates=str(config.get("eval_strategy", "no")) != "no",
    )


def _read_retrieval(config: Tree, platform: str, gpus: int) -> Plan:
    """Read the plan of a retrieval encoder in full precision.

    For each request, its text, its tool and the hard negatives are in memory.
    """
    texts = positive(config.get("batch_size"), 64) * (2 + positive(config.get("hard_negatives"), 0))
    training = Training(
        weight_bytes=4,
        element_bytes=4,
        shards=1,
        tokens=texts * positive(config.get("max_length"), 256),
        is_checkpointed=bool(config.get("gradient_checkpointing")),
        has_logits=False,
    )
    return Plan(
        platform=platform,
        gpus=gpus,
        training=training,
        library_bytes=SUPERVISOR_BYTES + TRL_TRAINER_BYTES,
        evaluates=True,
    )
