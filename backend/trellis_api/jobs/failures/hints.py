"""What to try when a run ended for a cause that we know."""

from trellis_contracts.recipe import Text

HINTS: dict[str, Text] = {
    "out_of_memory": Text(
        en="The machine ran out of memory. Lower the batch size or response length, or "
        "use a machine with more memory.",
        zh="机器内存不足。请减小批大小或回复长度，或换用内存更大的机器。",
    ),
    "cuda_out_of_memory": Text(
        en="The GPU ran out of memory. Lower the micro-batch size, the response length or "
        "vLLM's GPU memory utilization, or use more GPUs.",
        zh="GPU 显存不足。请减小微批大小、回复长度或 vLLM 的显存占比，或增加 GPU 数量。",
    ),
    "killed": Text(
        en="The training process was killed externally, usually by the OOM killer. Resume "
        "from the last checkpoint; if it happens again, lower the batch size.",
        zh="训练进程被外部终止，多半是系统内存不足所致。可从最近的检查点继续；若再次发生，请减小批大小。",
    ),
    "engine_not_started": Text(
        en="vLLM could not load the model. See the reason and the log for what is missing or unsupported.",
        zh="vLLM 无法加载该模型。原因和日志中指明了缺少或不支持的内容。",
    ),
    "engine_died": Text(
        en="The endpoint's engine exited, usually because it ran out of memory. Restart "
        "it; if it fails again, lower the context length (max_model_len) or stop other "
        "endpoints.",
        zh="该端点的引擎自行退出，多半是内存不足所致。请重新启动；若再次发生，请限制上下文长度（max_model_len）或停止其他端点。",
    ),
    "heartbeat_lost": Text(
        en="The run stopped reporting: its machine or network connection was lost. Resume "
        "from the last checkpoint.",
        zh="任务不再上报：机器或网络中断。可从最近的检查点继续。",
    ),
    "frozen": Text(
        en="The run's supervisor process hung: it was paused, or blocked on an "
        "unresponsive file system. Check the disk or network share of the data root, "
        "then resume from the last checkpoint.",
        zh="监督该任务的进程停滞不动：它被暂停，或在等待没有响应的文件系统。"
        "请检查数据目录所在的磁盘或网络共享，然后从最近的检查点继续。",
    ),
    "node_lost": Text(
        en="The machine that ran the job left the cluster. Resume from the last checkpoint.",
        zh="运行任务的机器离开了集群。可从最近的检查点继续。",
    ),
    "bad_data": Text(
        en="The data doesn't work with this recipe. See the reason for the row or column, "
        "and check the dataset's preview.",
        zh="数据无法用于该方案。原因中指明了所在的行或列，请查看数据集预览。",
    ),
    "bad_spec": Text(
        en="The run could not read its job spec. Clone the job; if that fails too, the "
        "platform and its training package may have different versions.",
        zh="任务无法读取其规格说明。请复制任务重新启动；若仍失败，平台与训练包的版本可能不一致。",
    ),
    "isolation_unavailable": Text(
        en="TRELLIS_JOB_ISOLATION=required, but this machine doesn't permit user and mount namespaces. "
        "Run ./init.sh doctor there, and allow them (in a container: a seccomp profile that permits them), "
        "or set TRELLIS_JOB_ISOLATION=auto.",
        zh="TRELLIS_JOB_ISOLATION=required，但该机器不允许用户和挂载命名空间。"
        "请在该机器上运行 ./init.sh doctor，"
        "并放开限制（容器中需要允许它们的 seccomp 配置），或设置 TRELLIS_JOB_ISOLATION=auto。",
    ),
    "bad_configuration": Text(
        en="The engine rejected the configuration. The last log lines name the key; "
        "compare it with the preview.",
        zh="训练引擎拒绝了该配置。最后几行日志指明了相应的键，请与预览对照。",
    ),
    "rewards_failing": Text(
        en="More than half of a step's reward calls failed, or a reward hit a fatal "
        "error. Dry-run the rewards.",
        zh="某一步超过一半的评分抛出异常，或某个奖励无法继续使用。请先试运行这些奖励。",
    ),
    "sessions_failing": Text(
        en="The workflow raised an exception in most sessions. See the reason for file "
        "and line, and the log and rollouts for tracebacks. Fix the workflow and test "
        "it with: trellis tune validate.",
        zh="工作流在大多数会话中抛出了异常。原因中给出了各类错误的数量以及文件和行号，"
        "完整的错误回溯见日志和该步的回复样本。"
        "请修正工作流，并先用 trellis tune validate 试运行。",
    ),
    "reward_unusable": Text(
        en="A reward could not be loaded, so the run ended before its first step. Fix the "
        "problem given in the reason and dry-run the rewards.",
        zh="某个奖励无法加载或使用，因此任务在第一步之前就结束了。请按原因修正，并先试运行这些奖励。",
    ),
    "agent_unusable": Text(
        en="The agent could not be set up, so the run ended before its first step. Fix "
        "the problem given in the reason: recreate the environment, or correct the "
        "agent's options or workflow.",
        zh="智能体无法行动，因此任务在第一步之前就结束了。请按原因修正：重新生成环境，或更正智能体的选项或工作流。",
    ),
    "model_not_found": Text(
        en="The model's files are missing or incomplete. Register the model again.",
        zh="模型文件缺失或不完整。请重新登记该模型。",
    ),
    "disk_full": Text(
        en="The disk is full. Delete old jobs or checkpoints, then resume.",
        zh="磁盘已满。请删除旧任务或检查点后继续。",
    ),
    "launch_failed": Text(
        en="The job could not be started on the cluster. Check the system status on the Overview page.",
        zh="无法在集群上启动任务。请查看总览中的系统状态。",
    ),
    "other_platform": Text(
        en="Clone the job to configure it for this platform. If the platform wasn't meant to change "
        "(TRELLIS_PLATFORM, GPU driver), put that right and resume.",
        zh="请复制任务，以便按当前平台重新配置。若平台本不应改变"
        "（TRELLIS_PLATFORM、GPU 驱动），请先恢复原状再继续。",
    ),
    "not_placed": Text(
        en="No cluster node had the requested resources before Ray timed out. See the log "
        "for what was missing. Request fewer GPUs or add nodes or CPUs, then resume.",
        zh="在 Ray 的等待时限内，集群中没有节点满足任务所需的资源；任务日志列出了缺少的资源。"
        "请减少申请的 GPU 数量，或为集群增加节点或 CPU 后继续。",
    ),
    "non_finite_loss": Text(
        en="The loss is NaN or infinite. Lower the learning rate or enable gradient clipping.",
        zh="损失值已不是有效数字。请降低学习率或启用梯度裁剪。",
    ),
    "engine_moved": Text(
        en="The installed version of verl, vLLM, TRL or torch is not supported. Install "
        "the pinned versions (./init.sh setup) or follow docs/upgrading.md; `trellis "
        "engines compat` lists the differences.",
        zh="已安装的 verl、vLLM、TRL 或 torch 版本与平台适配的版本不一致。请安装锁定文件中的版本"
        "（./init.sh setup），或按 docs/upgrading.md 升级；`trellis engines compat` 会列出发生变化的符号。",
    ),
    "sampling_exhausted": Text(
        en="Most prompts have all-correct or all-wrong responses, so there is no learning "
        "signal; the reason gives both shares. Use data closer to the model's ability, a larger group, a "
        "finer-grained reward, or allow more batches.",
        zh="多数提示的回答全对或全错，没有可学习的信号；原因中给出两者的比例。请换用更贴合模型能力的数据、增大组大小、使用更细粒度的奖励，"
        "或允许采样更多批次。",
    ),
    "kv_cache_too_small": Text(
        en="Reduce the prompt or response length, raise vLLM's GPU memory utilization, or "
        "run fewer concurrent sequences.",
        zh="请缩短提示或回复长度，提高 vLLM 的内存占比，或减少并发序列数。",
    ),
    "shared_memory_full": Text(
        en="Increase /dev/shm (in a container: --shm-size), or stop other runs on this machine.",
        zh="请增大 /dev/shm（容器中使用 --shm-size），或结束本机上的其他任务。",
    ),
    "missing_column": Text(
        en="The dataset is missing columns that this recipe needs. Check its preview and format.",
        zh="数据集缺少该方案所需的列，请查看数据集预览及其格式。",
    ),
    "model_access_denied": Text(
        en="Request access on the model's page and set HF_TOKEN on the cluster, or register a local copy.",
        zh="请在模型页面申请访问权限并在集群所在环境设置 HF_TOKEN，或登记本地副本。",
    ),
    "hub_unreachable": Text(
        en="Register a local copy of the model, or give the cluster access to the Hub.",
        zh="请登记模型的本地副本，或使集群的机器能够访问模型中心。",
    ),
    "batch_size_mismatch": Text(
        en="Change the batch sizes so that each one divides the next larger one, taking "
        "the number of GPUs into account.",
        zh="请调整各级批大小，使其逐级整除，并与 GPU 数量相匹配。",
    ),
    "prompt_too_long": Text(
        en="Raise the max prompt length, or remove long prompts from the data.",
        zh="请增大最大提示长度，或从数据中剔除过长的提示。",
    ),
    "not_enough_gpus": Text(
        en="Request fewer GPUs, or wait until the cluster has more.",
        zh="请减少申请的 GPU 数量，或等待集群扩容。",
    ),
    "no_gpu": Text(
        en="Check the driver with nvidia-smi, or run the platform with TRELLIS_PLATFORM=cpu.",
        zh="请用 nvidia-smi 检查驱动，或以 TRELLIS_PLATFORM=cpu 运行平台。",
    ),
    "gpu_fault": Text(
        en="Resume from the last checkpoint. If it happens again, check the GPU and its driver.",
        zh="可从最近的检查点继续；若再次发生，请检查 GPU 或其驱动。",
    ),
    "communication_failed": Text(
        en="Resume from the last checkpoint. If it happens again, check the network between the machines.",
        zh="可从最近的检查点继续；若再次发生，请检查机器之间的网络。",
    ),
    "worker_died": Text(
        en="Usually caused by running out of memory. Resume from the last checkpoint; if "
        "it happens again, lower the batch size.",
        zh="多半是系统内存不足。可从最近的检查点继续；若再次发生，请减小批大小。",
    ),
    "cluster_unreachable": Text(
        en="Check the system status on the Overview page. When the cluster is back, "
        "resume from the last checkpoint.",
        zh="请查看总览中的系统状态；集群恢复后可从最近的检查点继续。",
    ),
    "port_in_use": Text(
        en="The port was taken by another process. Resume the job; it will pick another one.",
        zh="端口已被其他进程占用。请继续该任务，它会另选端口。",
    ),
    "chat_template_missing": Text(
        en="Choose an instruction-tuned model, or first run SFT on conversations with a "
        "tokenizer that has a chat template.",
        zh="请选择经过指令微调的模型，或使用带对话模板的分词器先进行监督微调（SFT）。",
    ),
    "no_rows_left": Text(
        en="Raise the max length; longer rows are skipped.",
        zh="请增大最大长度；放不下的行不参与训练。",
    ),
    "checkpoint_unreadable": Text(
        en="The weights don't match the model, or the file is corrupted. Resume from an earlier checkpoint.",
        zh="权重与模型不匹配，或文件已损坏。请从更早的检查点继续。",
    ),
    "export_incomplete": Text(
        en="Files of the checkpoint are missing, or it holds no weights. Export another checkpoint.",
        zh="检查点缺少文件或不含权重。请导出该任务的其他检查点。",
    ),
    "checkpoint_not_found": Text(
        en="The checkpoint's files are gone. Export another checkpoint of the job.",
        zh="检查点的文件已不存在。请导出该任务的其他检查点。",
    ),
    "checkpoint_pruned": Text(
        en="The checkpoint was pruned before its export started. Export another one, and "
        "pin checkpoints you want to keep.",
        zh="该检查点在导出开始之前已被删除。请导出其他检查点，并固定需要保留的检查点。",
    ),
    "export_mismatch": Text(
        en="The checkpoint's weights don't match the model. If the base model was "
        "replaced after training, restore the original.",
        zh="检查点的权重与模型不匹配。若训练之后更换过基础模型，请恢复训练时所用的模型。",
    ),
    "export_invalid": Text(
        en="The exported model doesn't load or produces non-finite outputs, so it was not "
        "registered. The training may have diverged; export an earlier checkpoint.",
        zh="写出的模型无法加载或计算结果不是有限数值，因此没有登记。请导出更早的检查点：训练可能已经发散。",
    ),
    "evaluation_invalid": Text(
        en="The run finished but left no usable result, so no scores were recorded. "
        "Retry; if it fails again, check free disk space and the log.",
        zh="任务正常结束，但没有留下可用的结果，因此没有记录分数。请重试；若再次失败，请检查磁盘空间并查看日志。",
    ),
    "benchmark_missing": Text(
        en="The benchmark's files could not be downloaded. Install it on the Benchmarks "
        "page, which shows the error, then retry the evaluation.",
        zh="未能获取评测集文件。请在评测集页面安装（页面会说明问题所在），然后重试该评测。",
    ),
    "benchmark_unusable": Text(
        en="The benchmark can't run with these settings. See the reason for the row, column or setting.",
        zh="无法按该设置运行评测集；原因中指明了所在的行、列或设置。",
    ),
    "model_not_ready": Text(
        en="The model was deleted or its files are missing. Register it again and start a new evaluation.",
        zh="模型已被删除或文件不在。请重新登记模型并新建评测。",
    ),
    "evaluation_not_found": Text(
        en="The evaluation was deleted before its job started. Start a new one.",
        zh="评测在任务开始之前已被删除。请新建评测。",
    ),
    "missing_package": Text(
        en="Install the package on the cluster and resume. A resumed job keeps its settings: to do without "
        "the package, clone the job. For flash-attn, set TRELLIS_FLASH_ATTENTION=false first, and the clone "
        "uses PyTorch's attention.",
        zh="请在集群所在环境安装该软件包，然后继续任务。继续的任务会沿用原有设置：若要不使用该软件包，请复制任务。"
        "对于 flash-attn，请先设置 TRELLIS_FLASH_ATTENTION=false，复制出的任务将使用 PyTorch 的注意力实现。",
    ),
    "permission_denied": Text(
        en="Give the user running the cluster access to the path in the reason.",
        zh="请为运行集群的用户授予原因中所述路径的访问权限。",
    ),
    "native_crash": Text(
        en="Native code crashed. Resume from the last checkpoint; the last log lines may name the library.",
        zh="本地代码出错。可从最近的检查点继续；最后几行日志可能指明相关的库。",
    ),
    "terminated": Text(
        en="The run was terminated from outside the platform. Resume from the last checkpoint.",
        zh="任务被平台以外的操作终止。可从最近的检查点继续。",
    ),
    "storage_full": Text(
        en="Free up disk space in the data root, then resume.",
        zh="请在数据目录下腾出磁盘空间后继续。",
    ),
    "storage_unwritable": Text(
        en="Make the data root writable for the user running the platform, then resume.",
        zh="请使运行平台的用户可以写入数据目录，然后继续。",
    ),
    "ended": Text(
        en="The run didn't reach a checkpoint within the grace period. Raise the grace "
        "period or save more often.",
        zh="任务在宽限时间内未能到达检查点。请延长宽限时间，或更频繁地保存。",
    ),
    "disowned": Text(
        en="The platform had already given up on this attempt. Resume from the last checkpoint.",
        zh="平台已放弃该次尝试。可从最近的检查点继续。",
    ),
    "unknown_dataset": Text(
        en="The dataset was deleted. Upload it again and clone the job with it.",
        zh="数据集已被删除。请重新上传，并用它复制任务后启动。",
    ),
    # The weights of a model may also be still on their way, or may never have come.
    "unknown_model": Text(
        en="The model was deleted or isn't downloaded yet. Register it again or wait "
        "until it is ready, then clone the job.",
        zh="模型已被删除，或其权重尚未就绪。请重新登记，或等待其就绪，然后用它复制任务后启动。",
    ),
    "unknown_environment": Text(
        en="The environment was deleted. Recreate it (the same parameters produce the "
        "same rows) and clone the job with it.",
        zh="环境已被删除。请重新创建（相同参数得到相同数据），并用它复制任务后启动。",
    ),
    "environment_not_ready": Text(
        en="Wait until the environment is ready, or recreate it if it failed; then clone the job.",
        zh="请等待环境就绪；若创建失败请重新创建，然后复制任务后启动。",
    ),
    "unsuitable_environment": Text(
        en="Choose an environment of the kind this recipe needs.",
        zh="请选择与该方案的智能体相符的环境类型。",
    ),
    "chat_template_runaway": Text(
        en="Replace the chat template in the model's folder, or clone the job with another model.",
        zh="请替换模型文件夹中的对话模板，或复制任务并选择其他模型。",
    ),
    "tools_not_shown": Text(
        en="Use a model with tool support, or clone the job with tool_template set to hermes.",
        zh="请选择支持工具的模型，或复制任务并将 tool_template 设为 hermes。",
    ),
    "unknown_workflow": Text(
        en="The agent code was deleted. Upload it again and clone the job with it.",
        zh="智能体代码已被删除。请重新上传，并用它复制任务后启动。",
    ),
    "stage_job_deleted": Text(
        en="Rerun the stage, or restart the workflow: finished stages are skipped.",
        zh="请重新运行该阶段，或启动工作流：已完成的阶段会被跳过。",
    ),
    "stage_not_exported": Text(
        en="Training finished but the export failed; see the job page for the reason. Fix "
        "it and restart the workflow: it only repeats the export, unless the "
        "checkpoint is gone.",
        zh="训练本身已完成；任务页面说明了导出失败的原因。处理后请启动工作流：只要检查点还在，就只会重新导出，不会重新训练。",
    ),
    "pipeline_stage_failed": Text(
        en="See the workers' log for details. Fix the problem and restart the workflow.",
        zh="工作进程的日志说明了原因。修复后请再次启动工作流。",
    ),
}


def find_hint(cause: str | None) -> Text | None:
    """Return the hint for a cause, if it is a known one."""
    return HINTS.get(cause) if cause else None
