"""The parts of a phase: what lies on one GPU, in bytes, and a sentence on how that was computed."""

from trellis_contracts.recipe import Text

from trellis_recipes.memory import formulas
from trellis_recipes.memory.architecture import Architecture
from trellis_recipes.memory.plan import Plan, Reference, RolloutEngine, Training
from trellis_recipes.memory.schemas import MemoryPart

#: A CUDA context with its kernels and NCCL's buffers on each GPU: a rule of thumb.
CONTEXT_BYTES = 1024**3


def weights(architecture: Architecture, training: Training, parameters: int) -> MemoryPart:
    """Return the memory of the stored weights; LoRA adapter weights are in full precision."""
    adapter = _adapter(architecture, training)
    if training.base_bits:
        rest = training.weight_bytes
        base = formulas.quantised_bytes(architecture, parameters, training.base_bits, rest)
        each = "4.127 / 8 B (NF4" if training.base_bits == 4 else "1 B (LLM.int8"
        how = f"{parameters:,} × {each}; {rest} B outside linear layers) + LoRA {adapter:,} × 4 B"
    else:
        base = parameters * training.weight_bytes // training.shards
        how = f"{parameters:,} × {training.weight_bytes} B{_split(training.shards)}"
        how += f" + LoRA {adapter:,} × 4 B" if adapter else ""
    return _part("weights", ("Weights", "权重"), base + adapter * 4 // training.shards, (how, how))


def gradients(architecture: Architecture, training: Training, parameters: int) -> MemoryPart:
    """Return the memory of one gradient per trained weight, in the precision in which it is stored."""
    count, size = _trained(architecture, training, parameters)
    how = f"{count:,} × {size} B{_split(training.shards)}"
    return _part("gradients", ("Gradients", "梯度"), count * size // training.shards, (how, how))


def optimizer(architecture: Architecture, training: Training, parameters: int) -> MemoryPart:
    """Return the memory of both moments of AdamW, in the precision of the weights that are trained."""
    count, size = _trained(architecture, training, parameters)
    how = f"{count:,} × 2 × {size} B{_split(training.shards)}"
    return _part(
        "optimizer",
        ("Optimizer (AdamW)", "优化器（AdamW）"),
        count * 2 * size // training.shards,
        (how, how),
    )


def gathered(architecture: Architecture, training: Training) -> MemoryPart | None:
    """Return the memory of two blocks and the embeddings, whole (FSDP2 prefetches one block)."""
    if not training.is_gathered:
        return None
    count = (
        2 * architecture.layer_parameters + architecture.embedding_parameters + architecture.head_parameters
    )
    size = training.element_bytes
    return _part(
        "gathered",
        ("Gathered blocks (FSDP)", "FSDP 聚合的层"),
        count * size,
        (
            f"2 blocks, embeddings and head: {count:,} × {size} B",
            f"两个层、词嵌入与输出头：{count:,} × {size} B",
        ),
    )


def activations(architecture: Architecture, training: Training, tokens: int) -> MemoryPart:
    """Return the memory of the activations that the forward pass keeps for the backward pass."""
    size = training.element_bytes
    if training.is_checkpointed:
        a_token = formulas.checkpointed_bytes_per_token(architecture, size)
        note = ("gradient checkpointing keeps the inputs of each block", "梯度检查点仅保留各层输入")
    else:
        a_token = architecture.layers * formulas.activation_bytes_per_token(architecture, size)
        note = (f"{architecture.layers} blocks, whole", f"{architecture.layers} 层，完整保留")
    how = f"{tokens:,} × {a_token:,} B"
    return _part(
        "activations",
        ("Activations", "激活值"),
        tokens * a_token,
        (f"{how} a token ({note[0]})", f"{how}/Token（{note[1]}）"),
    )


def adapter_outputs(architecture: Architecture, training: Training, platform: str) -> MemoryPart | None:
    """Return the memory an adapter adds on a CPU: each layer's output before the adapter's is added.

    PEFT needs it for a moment only, but the C library keeps the pages: measured with SmolLM2-135M, 16 x 96
    tokens, the process holds 0.99 GiB more after the forward pass than without an adapter, and this is 0.89.
    """
    if platform != "cpu" or not training.lora_rank or training.is_checkpointed:
        return None
    a_token = architecture.layers * training.element_bytes * architecture.adapted_width(training.lora_targets)
    how = f"{training.tokens:,} × {a_token:,} B"
    return _part(
        "adapter_outputs",
        ("Outputs under the adapter", "适配器下各层输出"),
        training.tokens * a_token,
        (f"{how} a token", f"{how}/Token"),
    )


def forward_activations(architecture: Architecture, training: Training, tokens: int) -> MemoryPart:
    """Return the memory of one block at a time, where no activations are kept."""
    a_token = formulas.activation_bytes_per_token(architecture, training.element_bytes)
    how = f"{tokens:,} × {a_token:,} B"
    return _part(
        "activations",
        ("Activations", "激活值"),
        tokens * a_token,
        (f"{how} a token (one block at a time)", f"{how}/Token（逐层计算）"),
    )


def logits(
    architecture: Architecture, training: Training, tokens: int, *, is_training: bool
) -> MemoryPart | None:
    """Return the memory of the logits over the vocabulary; None if the training computes none."""
    if not training.has_logits:
        return None
    a_token = formulas.logits_bytes_per_token(architecture, training.element_bytes, is_training=is_training)
    copies = f"{tokens:,} × {architecture.vocabulary:,} × {a_token // architecture.vocabulary} B"
    kinds = (
        ("with fp32 copy and gradient", "含 fp32 副本与梯度")
        if is_training
        else ("with fp32 copy", "含 fp32 副本")
    )
    return _part(
        "logits",
        ("Logits", "词表得分（logits）"),
        tokens * a_token,
        (f"{copies} ({kinds[0]})", f"{copies}（{kinds[1]}）"),
    )


def reference_weights(reference: Reference, parameters: int) -> MemoryPart:
    """Return the memory of the frozen reference model's weights."""
    how = f"{parameters:,} × {reference.weight_bytes} B{_split(reference.shards)}"
    size = parameters * reference.weight_bytes // reference.shards
    return _part("reference", ("Reference model", "参考模型"), size, (how, how))


def rollout_weights(rollout_engine: RolloutEngine, parameters: int) -> MemoryPart:
    """Return the memory of vLLM's weights; on a CPU, large ones are held again as its kernels read them."""
    copies = 2 if rollout_engine.is_packed else 1
    kinds = (
        (" × 2 (as sent, and packed)", " × 2（原样与打包各一份）") if rollout_engine.is_packed else ("", "")
    )
    count = f"{parameters:,} × {rollout_engine.element_bytes} B"
    split = _split(rollout_engine.tensor_parallel)
    size = copies * parameters * rollout_engine.element_bytes // rollout_engine.tensor_parallel
    return _part(
        "rollout_weights",
        ("Rollout engine's weights (vLLM)", "推理引擎权重（vLLM）"),
        size,
        (f"{count}{kinds[0]}{split}", f"{count}{kinds[1]}{split}"),
    )


def kv_cache(
    architecture: Architecture, rollout_engine: RolloutEngine, *, weight_bytes: int, available: int | None
) -> MemoryPart:
    """Return the configured space on a CPU; on a GPU what its share leaves, else what the sequences need."""
    title = ("KV cache", "KV 缓存")
    a_token = (
        formulas.kv_bytes_per_token(architecture, rollout_engine.element_bytes)
        // rollout_engine.tensor_parallel
    )
    if rollout_engine.share is None:
        return _kv_cache_of_a_cpu(rollout_engine, title, a_token)
    if available is not None:
        size = max(0, int(rollout_engine.share * available) - weight_bytes)
        return _part(
            "kv_cache",
            title,
            size,
            (
                f"{rollout_engine.share:.0%} of the GPU less the weights; {a_token:,} B a token",
                f"显存的 {rollout_engine.share:.0%} 减去权重；每 Token {a_token:,} B",
            ),
        )
    tokens = rollout_engine.sequences * rollout_engine.max_length
    how = f"{rollout_engine.sequences:,} × {rollout_engine.max_length:,} × {a_token:,} B"
    return _part(
        "kv_cache", title, tokens * a_token, (f"{how} (what all sequences need)", f"{how}（全部序列所需）")
    )


def _kv_cache_of_a_cpu(rollout_engine: RolloutEngine, title: tuple[str, str], a_token: int) -> MemoryPart:
    """Return the KV cache on a CPU, at most what the run fills: unwritten pages take no memory."""
    space = rollout_engine.cpu_cache_bytes // rollout_engine.tensor_parallel
    if rollout_engine.generated_tokens is not None and rollout_engine.generated_tokens * a_token < space:
        how = f"{rollout_engine.generated_tokens:,} × {a_token:,} B"
        return _part(
            "kv_cache",
            title,
            rollout_engine.generated_tokens * a_token,
            (f"{how} (all tokens of the run)", f"{how}（本次运行的全部 Token）"),
        )
    room = space // max(1, a_token)
    return _part(
        "kv_cache",
        title,
        space,
        (
            f"the configured space; {a_token:,} B a token, so {room:,} tokens",
            f"所配置的空间；每 Token {a_token:,} B，可容纳 {room:,} 个 Token",
        ),
    )


def bucket(rollout_engine: RolloutEngine, parameters: int) -> MemoryPart:
    """Return the memory of the buckets that carry weights to the rollout engine, one on each side."""
    size = min(rollout_engine.bucket_bytes, parameters * rollout_engine.element_bytes)
    how = f"2 × {size:,} B"
    return _part("weight_sync", ("Weight synchronisation", "权重同步"), 2 * size, (how, how))


def runtime(plan: Plan) -> MemoryPart:
    """Return the memory used before the first tensor is allocated, for each GPU or slot."""
    title = ("Libraries and context", "运行库与上下文")
    if plan.platform == "cpu":
        size = plan.library_bytes // max(1, plan.gpus)
        mebibytes = plan.library_bytes // 1024**2
        return _part(
            "runtime",
            title,
            size,
            (
                f"supervisor, trainer and their libraries: {mebibytes:,} MiB / {plan.gpus}",
                f"监督进程、训练进程及其库：{mebibytes:,} MiB / {plan.gpus}",
            ),
        )
    return _part(
        "runtime",
        title,
        CONTEXT_BYTES,
        ("CUDA context, kernels and NCCL buffers", "CUDA 上下文、内核与 NCCL 缓冲区"),
    )


def _adapter(architecture: Architecture, training: Training) -> int:
    return architecture.count_lora(training.lora_rank, training.lora_targets) if training.lora_rank else 0


def _trained(architecture: Architecture, training: Training, parameters: int) -> tuple[int, int]:
    """Return how many weights are trained, and the bytes of each."""
    adapter = _adapter(architecture, training)
    return (adapter, 4) if training.lora_rank else (parameters, training.weight_bytes)


def _split(shards: int) -> str:
    return f" / {shards}" if shards > 1 else ""


def _part(name: str, title: tuple[str, str], size: int, how: tuple[str, str]) -> MemoryPart:
    return MemoryPart(
        name=name, title=Text(en=title[0], zh=title[1]), bytes=int(size), how=Text(en=how[0], zh=how[1])
    )
