"""What an alarm says to people, and what to try: parameters by their names in the launch form."""

from dataclasses import dataclass

from trellis_contracts.recipe import Text


@dataclass(frozen=True)
class AlarmTexts:
    """Title and advice of one alarm."""

    title: Text
    advice: Text


TEXTS: dict[str, AlarmTexts] = {
    "loss_not_finite": AlarmTexts(
        title=Text(en="Loss is not finite", zh="损失不是有限数值"),
        advice=Text(
            en="The weights are most likely corrupted from this step on. Stop and resume from "
            "an earlier checkpoint, or clone the job with a 3 to 10x lower learning_rate, "
            "a longer warmup_ratio and grad_clip of 1.0 or less. With half precision, "
            "check the data for empty answers.",
            zh="从这一步起权重很可能已损坏。请停止任务，从此前的检查点继续，或复制任务并将 learning_rate "
            "降低 3–10 倍、加长 warmup_ratio、将 grad_clip 设为 1.0 或更低。"
            "若使用半精度，请检查数据中是否有空回答。",
        ),
    ),
    "loss_exploding": AlarmTexts(
        title=Text(en="Loss is far above its initial value", zh="损失远高于起始值"),
        advice=Text(
            en="The run has diverged: the model is now worse than the base model. Clone the "
            "job with a 3 to 10x lower learning_rate, a warmup_ratio of 0.03 to 0.1 and "
            "grad_clip of 1.0.",
            zh="训练已发散：模型比起始时更差。请复制任务，将 learning_rate 降低 3–10 倍，"
            "将 warmup_ratio 设为 0.03–0.1，grad_clip 设为 1.0。",
        ),
    ),
    "grad_norm_exploding": AlarmTexts(
        title=Text(en="Exploding gradient norm", zh="梯度范数激增"),
        advice=Text(
            en="Lower learning_rate, increase warmup_ratio and keep grad_clip at 1.0 or less; "
            "a larger batch_size reduces gradient noise. If only a single step spikes, "
            "check that step's data for bad rows.",
            zh="请降低 learning_rate，加长 warmup_ratio，并将 grad_clip 保持在 1.0 或更低；"
            "更大的 batch_size 可使梯度更稳定。若只在某一步突增，请检查该步数据中的异常行。",
        ),
    ),
    "kl_exploding": AlarmTexts(
        title=Text(
            en="Policy KL divergence has exploded or is not finite",
            zh="策略的 KL 散度激增或不是有限数值",
        ),
        advice=Text(
            en="The policy is diverging. Lower learning_rate or clip_ratio, do fewer updates per batch "
            "(ppo_epochs 1, a larger mini_batch_size), or keep the policy close to the reference with "
            "use_kl_loss and a higher kl_coefficient. Check the rollouts: a rising reward with strange text "
            "is reward hacking. If the KL is NaN or infinite, the weights are most likely corrupted: resume "
            "from a checkpoint before this step.",
            zh="策略正在失控偏离。请降低 learning_rate 或 clip_ratio，减少每批数据的更新次数"
            "（ppo_epochs 设为 1，增大 mini_batch_size），或用 use_kl_loss 与更高的 kl_coefficient 约束策略。"
            "请查看回复样本：奖励上升而文本怪异即为奖励作弊。"
            "若 KL 为 NaN 或无穷大，权重很可能已损坏，请从这一步之前的检查点继续。",
        ),
    ),
    "entropy_collapse": AlarmTexts(
        title=Text(en="Policy entropy has collapsed", zh="策略熵塌缩"),
        advice=Text(
            en="Responses to the same prompt are nearly identical, so there is little left to "
            "learn. If the reward is at its maximum, training is done. Otherwise resume "
            "from an earlier checkpoint with a higher clip_ratio_high (DAPO) or "
            "entropy_coefficient, temperature 1.0, or a lower learning_rate.",
            zh="同一提示的样本几乎相同，已难以继续学习。若奖励已到上限，则属正常结束；否则请从较早的检查点继续，"
            "提高 clip_ratio_high（DAPO）或 entropy_coefficient，将 temperature 设为 1.0，"
            "或降低 learning_rate。",
        ),
    ),
    "rewards_all_zero": AlarmTexts(
        title=Text(en="All rewards are zero", zh="所有奖励均为零"),
        advice=Text(
            en="These steps give no learning signal. Check the rollouts: if correct answers "
            "aren't recognized, choose another reward or reward_pattern; if responses are "
            "truncated, raise max_response_length; if the task is too hard, raise "
            "group_size, use easier rows, or start with supervised fine-tuning.",
            zh="这些步骤中无法学到任何内容。请查看回复样本："
            "若答案正确却未被识别，请更换 reward 或 reward_pattern；"
            "若回复被截断，请增大 max_response_length；若任务过难，请增大 group_size、使用更容易的数据，"
            "或先进行监督训练。",
        ),
    ),
    "rewards_all_equal": AlarmTexts(
        title=Text(en="All rewards are equal: no learning signal", zh="奖励全部相同：没有学习信号"),
        advice=Text(
            en="Advantages within each group are zero, so the policy isn't updated. If all "
            "rewards are at their maximum, the data is too easy: use harder rows. "
            "Otherwise raise group_size or temperature, use a finer-grained reward, or "
            "DAPO, which drops such groups.",
            zh="组内优势为零，策略不会更新。若奖励已全部达到最高，说明数据过易，请使用更难的数据；"
            "否则请增大 group_size 或 temperature，选用更细粒度的奖励，或使用会剔除此类分组的 DAPO。",
        ),
    ),
    "sessions_failing": AlarmTexts(
        title=Text(en="Many workflow sessions are failing", zh="工作流的许多会话失败"),
        advice=Text(
            en="Sessions that raise an exception or time out have no reward and are not trained on. The log "
            "counts the errors by kind, and the rollouts show each traceback. Fix the workflow, or return "
            "a low reward when the model's reply is unusable; raise session_timeout if sessions are slow.",
            zh="抛出异常或超时的会话没有奖励，模型无法从中学习。日志按类型统计了这些错误，"
            "回复样本中可查看每个错误回溯。请修正工作流，或在模型回复不可用时返回较低的奖励；"
            "若会话较慢，请增大 session_timeout。",
        ),
    ),
    "rollout_mismatch": AlarmTexts(
        title=Text(en="Rollout and training probabilities disagree", zh="推理引擎与训练器的概率不一致"),
        advice=Text(
            en="The importance weights are biased or not finite, so updates are off-policy. Use the same "
            "precision for rollouts and training (rollout.dtype), leave top_p at 1, and check that "
            "quantization is off and weights are synced after each step; for MoE models, enable router "
            "replay. If rollouts have to be less precise, set importance_correction to token. Weights that "
            "are NaN or infinite mean that one side's probabilities are broken: resume from a checkpoint "
            "before this step.",
            zh="重要性权重有偏或不是有限数值，更新所依据的策略并非采样所用的策略。"
            "请让推理引擎与训练器使用相同精度（rollout.dtype），"
            "将 top_p 保持为 1，确认未启用量化且每步之后权重已同步；对 MoE 模型请启用路由回放。"
            "若采样精度只能较低，请将 importance_correction 设为 token。"
            "若权重为 NaN 或无穷大，说明其中一侧的概率已失常，请从这一步之前的检查点继续。",
        ),
    ),
    "responses_truncated": AlarmTexts(
        title=Text(en="Nearly all responses are truncated", zh="几乎所有回复都被截断"),
        advice=Text(
            en="Rewards are computed on unfinished answers. Raise max_response_length, or "
            "teach the model to stop earlier: start with supervised fine-tuning, or add a "
            "length_penalty. If responses repeat themselves, lower temperature or "
            "learning_rate.",
            zh="奖励评判的是未完成的回答。请增大 max_response_length，或让模型学会结束：先进行监督训练，"
            "或设置 length_penalty。若回复不断重复，请降低 temperature 或 learning_rate。",
        ),
    ),
    "validation_worse": AlarmTexts(
        title=Text(en="Validation loss is rising", zh="验证损失正在上升"),
        advice=Text(
            en="The model is overfitting. Export the checkpoint with the lowest validation "
            "loss. Next time, train for fewer epochs, with a lower learning_rate, more "
            "data, or LoRA (lora_rank).",
            zh="模型开始死记训练数据。请导出验证损失最低的检查点；下次请减少 epochs，降低 learning_rate，"
            "增加数据，或使用 LoRA（lora_rank）。",
        ),
    ),
    "not_placed": AlarmTexts(
        title=Text(en="Not enough cluster resources for the job", zh="集群没有可容纳该任务的资源"),
        advice=Text(
            en="The job's log lists what it needs and what each node has free. Wait for other runs to "
            "finish, request fewer GPUs, or grow the cluster: add nodes with ray start --address, or declare "
            "more logical CPUs with ray start --num-cpus. You can also stop the waiting job.",
            zh="任务日志列出了所需资源以及各节点的空闲资源。请等待其他任务结束、减少申请的 GPU 数量，"
            "或扩充集群：用 ray start --address 加入新节点，或用 ray start --num-cpus 声明更多逻辑 CPU。"
            "无法启动的任务可以直接停止。",
        ),
    ),
    "other_platform": AlarmTexts(
        title=Text(en="The job was submitted for another platform", zh="任务是为其他平台提交的"),
        advice=Text(
            en="Start the platform as it was when the job was submitted: check TRELLIS_PLATFORM and, for "
            "GPUs, the driver (nvidia-smi), then restart all services: they count GPUs only when they start. "
            "Or stop the job and clone it to configure it for the present platform. Other jobs go on.",
            zh="请按提交任务时的方式启动平台：检查 TRELLIS_PLATFORM；若需要 GPU，再检查驱动（nvidia-smi），"
            "然后重启所有服务（服务仅在启动时统计 GPU 数量）。也可以停止该任务并复制，"
            "以便按当前平台重新配置。其他任务不受影响。",
        ),
    ),
    "stalled": AlarmTexts(
        title=Text(en="No new step for much longer than usual", zh="远超平常时间没有新的训练步"),
        advice=Text(
            en="The process is running but makes no progress. Check the last log lines, free memory and "
            "/dev/shm, and the cluster's free CPUs (too few can hang a run silently). If it doesn't "
            "recover, stop the job and resume it from its last checkpoint.",
            zh="进程仍在运行但没有进展。请查看最后的日志、剩余内存与 /dev/shm，"
            "以及集群的空闲 CPU（过少会无声卡住）。"
            "若不能自行恢复，请停止任务并从最近的检查点继续。",
        ),
    ),
    "reward_follows_length": AlarmTexts(
        title=Text(en="Reward correlates with response length", zh="奖励随回复长度增长"),
        advice=Text(
            en="Longer responses get a higher reward than shorter ones to the same prompt, and responses are "
            "growing. Check the example: if the extra text is filler, set length_penalty (or a length "
            "term in rewards), lower max_response_length, or have a judge compare answers of equal "
            "length. If longer reasoning is your goal, this is expected.",
            zh="对同一提示，较长的回复得分更高，且回复正在变长。请查看示例：若多出的文字没有内容，"
            "请设置 length_penalty（或在 rewards 中加入 length 项）、"
            "减小 max_response_length，或让裁判比较等长的回答。若训练目标就是更长的推理，则属正常进展。",
        ),
    ),
    "reward_parts_diverging": AlarmTexts(
        title=Text(en="Reward rises while accuracy falls", zh="奖励上升，但正确答案减少"),
        advice=Text(
            en="The policy trades correct answers for other parts of the reward. Compare the "
            "reward_parts/*/mean charts, lower the weight of the rising part (format_weight, its weight in "
            "rewards, an option of the reward, or the agent's own code), or give it to correct answers only. "
            "Resume from a checkpoint before the parts diverged.",
            zh="策略正以正确答案换取奖励的其他部分。请对比 reward_parts/*/mean 各曲线，"
            "降低上升项的权重（format_weight、rewards 中的权重、奖励的选项，或智能体自身的代码），"
            "或只对正确答案给予该项奖励。"
            "请从各项分化之前的检查点继续。",
        ),
    ),
    "responses_repeat": AlarmTexts(
        title=Text(en="Responses are far more repetitive than at the start", zh="回复的重复远多于起始时"),
        advice=Text(
            en="The policy has started to loop. Check the example: if repetition is rewarded, add a "
            "repetition term with a weight of 0.1 to 0.5 to rewards; otherwise lower learning_rate, "
            "raise temperature to 1.0, or keep the policy close to the reference with use_kl_loss.",
            zh="策略开始循环重复。请查看示例：若重复能得分，请在 rewards 中加入 repetition 项，"
            "权重 0.1–0.5；否则请降低 learning_rate、将 temperature 提高到 1.0，"
            "或用 use_kl_loss 约束策略。",
        ),
    ),
    "reward_without_progress": AlarmTexts(
        title=Text(
            en="Training reward rises, validation result doesn't", zh="训练奖励上升，验证结果没有提升"
        ),
        advice=Text(
            en="The policy only improves on the training rows. Check the example for reward hacking or "
            "memorized answers; use more or different rows, fewer epochs, or a higher kl_coefficient "
            "with use_kl_loss, and dry-run the rewards on this job's responses.",
            zh="策略学到的内容只在训练数据上得分。请查看示例中是否有取巧或死记答案；请使用更多或不同的数据、"
            "减少 epochs、用 use_kl_loss 并提高 kl_coefficient，并用本任务的回复对奖励进行试运行。",
        ),
    ),
    "format_only": AlarmTexts(
        title=Text(
            en="Responses are rewarded for format, not for answers", zh="回复只凭格式得分，答案没有得分"
        ),
        advice=Text(
            en="Nearly every response gets a reward without a correct answer, so there is little left to "
            "learn. Check the example: if answers are correct but not recognized, choose another "
            "reward or reward_pattern; if they are missing, lower format_weight, use easier rows, or "
            "start with supervised fine-tuning.",
            zh="几乎所有回复都在答案不正确的情况下得分，已难以继续学习。请查看示例：若答案正确却未被识别，"
            "请更换 reward 或 reward_pattern；若没有答案，请降低 format_weight、"
            "使用更容易的数据，或先进行监督训练。",
        ),
    ),
    "probe_earns": AlarmTexts(
        title=Text(
            en="A trick scores as high as the policy's best responses", zh="取巧的回复与最佳回复得分相当"
        ),
        advice=Text(
            en="The example is the trick that earned most: an empty response, the format alone, the response "
            "to another prompt, or the same response three times. A policy that finds it stops solving "
            "the task. Weight the answer more than the rest of the rewards, add repetition or "
            "length_penalty, and check the change in a dry run.",
            zh="示例是得分最高的取巧回复：空回复、只有格式、另一提示的回复，或同一回复重复三遍。"
            "策略一旦发现，就不再解决任务。"
            "请让答案的权重高于 rewards 的其他项，加入 repetition 或 length_penalty，"
            "并用试运行检查修改。",
        ),
    ),
}
