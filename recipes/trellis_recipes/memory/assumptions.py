"""What an estimate takes for granted, and what is worth a warning, in words."""

from trellis_contracts.recipe import Text

from trellis_recipes.memory.architecture import Architecture
from trellis_recipes.memory.plan import Plan

_GIB = 1024**3
#: Above this share of what there is, a run that fits by the estimate may still not fit.
TIGHT = 0.9
#: Between the count of an architecture and that of its files; more means another architecture.
_TOLERANCE = 0.01


def list_assumptions(
    architecture: Architecture, plan: Plan, *, counted: int, known: int | None
) -> list[Text]:
    """List the estimate's assumptions in the order of their weight."""
    training = plan.training
    found = [
        Text(
            en="All sequences have the maximum length.",
            zh="每次计算都按上限估计：序列均为允许的最大长度。",
        ),
        Text(
            en="Memory-efficient attention (FlashAttention or SDPA) and the AdamW optimizer.",
            zh="注意力不保留得分矩阵（FlashAttention 或 SDPA）；优化器为 AdamW。",
        ),
    ]
    found += _count_assumptions(architecture, counted=counted, known=known)
    if plan.critic is not None:
        found.append(
            Text(
                en="The critic has the same architecture as the policy.",
                zh="评论家与被训练模型结构相同。",
            )
        )
    if plan.has_reward_model:
        found.append(
            Text(
                en="The reward model is not included; its size is unknown.",
                zh="未计入奖励模型：此处不知道其大小。",
            )
        )
    if training.is_offloaded and plan.platform != "cpu":
        found.append(
            Text(
                en="Weights and optimizer state are offloaded when idle; host memory is not included.",
                zh="权重与优化器在其他阶段移至主机内存；未计入主机内存。",
            )
        )
    if training.logits_tokens is not None:
        found.append(
            Text(
                en="Responses to the same prompt share one prompt forward pass.",
                zh="同一提示的回答在同一次计算中，提示只计算一次。",
            )
        )
    if plan.platform == "cpu":
        found.append(
            Text(
                en="Everything shares the machine's memory with other running processes.",
                zh="一切都占用本机内存，并与机器上已有程序共享。",
            )
        )
    return found


def _count_assumptions(architecture: Architecture, *, counted: int, known: int | None) -> list[Text]:
    """List the assumptions about the number of parameters."""
    found = []
    if not architecture.is_known:
        found.append(
            Text(
                en=f"'{architecture.family}' is counted like a Llama with the same sizes.",
                zh=f"“{architecture.family}”按相同尺寸的 Llama 估计。",
            )
        )
    if known is not None and abs(known - counted) > _TOLERANCE * known:
        found.append(
            Text(
                en=f"The files hold {known:,} parameters; its configuration alone would give {counted:,}.",
                zh=f"模型文件含 {known:,} 个参数；仅按配置计算为 {counted:,} 个。",
            )
        )
    return found


def list_warnings(plan: Plan, *, needed: int, available: int | None, shared_memory: int | None) -> list[Text]:
    """List warnings only: an estimate refuses nothing."""
    found = []
    if available is not None and needed > TIGHT * available:
        have, want = available / _GIB, needed / _GIB
        lower_en = "Lower the tokens of a pass (max_tokens_per_gpu or micro_batch_size), turn "
        lower_en += "gradient_checkpointing on, use LoRA (lora_rank), or give it more GPUs."
        lower_zh = "请减小每次计算的 Token 数（max_tokens_per_gpu 或 micro_batch_size），开启 "
        lower_zh += "gradient_checkpointing，使用 LoRA（lora_rank），或增加 GPU。"
        is_more = needed > available
        relation = ("is more than", "超过") if is_more else ("is close to", "接近")
        found.append(
            Text(
                en=f"About {want:.1f} GiB {relation[0]} the {have:.1f} GiB that there are. {lower_en}",
                zh=f"约需 {want:.1f} GiB，{relation[1]}可用的 {have:.1f} GiB。{lower_zh}",
            )
        )
    bucket = (
        plan.rollout_engine.bucket_bytes if plan.rollout_engine is not None and plan.platform == "cpu" else 0
    )
    if shared_memory is not None and bucket > shared_memory:
        found.append(
            Text(
                en=f"Weights go to the rollout engine in buckets of {bucket // 1024**2} MiB "
                f"through /dev/shm, which has {shared_memory // 1024**2} MiB. Enlarge it, or lower "
                "update_weights_bucket_megabytes.",
                zh=f"权重以 {bucket // 1024**2} MiB 的块经 /dev/shm 传给推理引擎，而 /dev/shm 只有 "
                f"{shared_memory // 1024**2} MiB。请扩大它，或减小 update_weights_bucket_megabytes。",
            )
        )
    return found
