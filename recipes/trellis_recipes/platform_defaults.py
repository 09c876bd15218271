"""What a platform asks of the engine, whatever the recipe.

On a CPU this is the configuration in which verl and vLLM run without CUDA; on a GPU
verl's own defaults stay as they are.
"""

from typing import Any

from trellis_contracts.recipe import Engine
from trellis_contracts.spec import NICENESS_VARIABLE

from trellis_recipes.placement import MIN_HEAD_CPUS, process_demand

#: Full precision throughout: bfloat16 has no fast path on most CPUs, and trainer and rollout engine agree.
_FULL_PRECISION = {"param_dtype": "fp32", "reduce_dtype": "fp32", "buffer_dtype": "fp32"}

#: The bucket in which weights go to the rollout engine. On a CPU it lies in /dev/shm, which may be small, and
#: verl refuses a tensor that does not fit (``BucketedWeightSender``); on a GPU it sends such a one by itself.
_BUCKET = "actor_rollout_ref.rollout.checkpoint_engine.update_weights_bucket_megabytes"
_MIN_BUCKET_MIB = 64
#: Weights are sent in single precision.
_WEIGHT_BYTES, _MIB = 4, 1024**2

_CPU_PPO: dict[str, Any] = {
    "actor_rollout_ref.actor.fsdp_config.mixed_precision": _FULL_PRECISION,
    "actor_rollout_ref.actor.fsdp_config.model_dtype": "fp32",
    "actor_rollout_ref.actor.fsdp_config.use_torch_compile": False,
    "actor_rollout_ref.actor.use_torch_compile": False,
    "actor_rollout_ref.model.override_config.attn_implementation": "sdpa",
    "actor_rollout_ref.model.use_remove_padding": False,
    "actor_rollout_ref.ref.fsdp_config.mixed_precision": _FULL_PRECISION,
    "actor_rollout_ref.ref.fsdp_config.use_torch_compile": False,
    "actor_rollout_ref.rollout.agent.num_workers": 1,
    "actor_rollout_ref.rollout.dtype": "float32",
    "actor_rollout_ref.rollout.enable_sleep_mode": False,
    "actor_rollout_ref.rollout.enforce_eager": True,
    # vLLM's default on a CPU is 128: a shorter context shares nothing with the next turn of its episode,
    # and attention reads whole blocks (docs/adr/0017-few-threads-for-small-models.md).
    "actor_rollout_ref.rollout.engine_kwargs.vllm.block_size": 32,
    "actor_rollout_ref.rollout.free_cache_engine": False,
    "critic.fsdp.mixed_precision": _FULL_PRECISION,
    "critic.fsdp.use_torch_compile": False,
    "critic.model.override_config.attn_implementation": "sdpa",
    "critic.model.use_remove_padding": False,
    "data.dataloader_num_workers": 0,
    "reward.num_workers": 1,
    "transfer_queue.backend.SimpleStorage.num_data_storage_units": 1,
}
_CPU_SFT: dict[str, Any] = {
    "data.num_workers": 0,
    "engine.mixed_precision": _FULL_PRECISION,
    "engine.model_dtype": "fp32",
    "engine.use_torch_compile": False,
    "model.override_config.attn_implementation": "sdpa",
}
#: PyTorch's own attention on a GPU. It knows no boundaries inside a row, so sequences are padded, not packed.
_WITHOUT_FLASH_ATTENTION: dict[Engine, dict[str, Any]] = {
    Engine.VERL_PPO: {
        "actor_rollout_ref.model.override_config.attn_implementation": "sdpa",
        "actor_rollout_ref.model.use_remove_padding": False,
        "critic.model.override_config.attn_implementation": "sdpa",
        "critic.model.use_remove_padding": False,
    },
    Engine.VERL_SFT: {
        "model.override_config.attn_implementation": "sdpa",
        "model.use_remove_padding": False,
    },
}
# Trainer, rollout engine and their helpers share the cores. OpenMP's idle threads spin by default, which
# keeps the others from working: a step of a tiny model was seen to take ten times as long.
_SHARED_CORES = {"OMP_WAIT_POLICY": "PASSIVE"}
_CPU_ENVIRONMENT = {
    "VERL_PLATFORM": "cpu",
    # verl registers its FSDP engines for cuda and npu only.
    "VERL_ENGINE_DEVICE": "cuda",
    **_SHARED_CORES,
}
_TRL_ENVIRONMENT = {
    # Models are on this machine; nothing is to be asked of, or told to, the model hub.
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    # The recipes say themselves which trainers are experimental.
    "TRL_EXPERIMENTAL_SILENCE": "1",
}
_CPU_SAMPLER_ENVIRONMENT = {
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
}
#: Ray shows every GPU of the node to a process that was given none.
_WITHOUT_GPUS = {"CUDA_VISIBLE_DEVICES": ""}
_CPU_ENGINE_ENVIRONMENT = {
    "VERL_PLATFORM": "cpu",
    **_SHARED_CORES,
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    # No trainer sends weights: vLLM may lay them out as it likes.
    "TRELLIS_FIXED_WEIGHTS": "1",
}
#: An evaluation is nobody's turn to wait for: it takes the time that others leave.
_CPU_EVALUATION_ENVIRONMENT = {**_CPU_ENGINE_ENVIRONMENT, NICENESS_VARIABLE: "10"}


def engine_defaults(
    engine: Engine,
    platform: str,
    largest_weight: int | None = None,
    *,
    has_flash_attention: bool = True,
) -> dict[str, Any]:
    """Return engine settings by dotted key; a person's own settings come after them.

    ``largest_weight`` is the number of elements of the model's largest tensor.
    """
    if platform != "cpu":
        return {} if has_flash_attention else dict(_WITHOUT_FLASH_ATTENTION.get(engine, {}))
    if engine in (Engine.TRL, Engine.EVALUATE, Engine.RETRIEVAL, Engine.SERVE):
        return {}
    if engine is not Engine.VERL_PPO:
        return dict(_CPU_SFT)
    return {**_CPU_PPO, _BUCKET: max(_MIN_BUCKET_MIB, -(-(largest_weight or 0) * _WEIGHT_BYTES // _MIB))}


def environment(engine: Engine, platform: str) -> dict[str, str]:
    """Return environment variables of the engine's processes; none of them is a secret."""
    common = {"TOKENIZERS_PARALLELISM": "false"}
    if engine in (Engine.TRL, Engine.RETRIEVAL):
        return {**common, **_TRL_ENVIRONMENT, **(_SHARED_CORES if platform == "cpu" else {})}
    if engine is Engine.EXPORT:
        common |= _WITHOUT_GPUS
    if platform != "cpu":
        return common
    if engine is Engine.SERVE:  # somebody waits for each answer
        return {**common, **_CPU_ENGINE_ENVIRONMENT}
    if engine is Engine.EVALUATE:
        return {**common, **_CPU_EVALUATION_ENVIRONMENT}
    sampler = _CPU_SAMPLER_ENVIRONMENT if engine is Engine.VERL_PPO else {}
    return {**common, **_CPU_ENVIRONMENT, **sampler}


def device(platform: str) -> str:
    """Return verl's name of the device to train on."""
    return "cpu" if platform == "cpu" else "cuda"


def own_cluster_settings(engine: Engine, platform: str, gpus: int) -> dict[str, Any]:
    """Return the settings with which verl starts a Ray cluster of its own, for replaying the command.

    On a CPU the GPUs and CPUs that verl's processes ask for are both logical.
    """
    if platform != "cpu" or engine is not Engine.VERL_PPO:
        return {}
    cpus = max(MIN_HEAD_CPUS, process_demand(engine, gpus).cpus)
    return {"ray_kwargs.ray_init.num_cpus": cpus, "ray_kwargs.ray_init.num_gpus": gpus}
