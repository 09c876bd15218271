"""TRL's settings that the platform itself makes, and those that change nothing."""

_RUN_NAMES = "it is managed by the job"
_REPORTING = "metrics go to the platform"
_HUB = "checkpoints stay in the job's folder; export a model instead"
_SAVING = "the platform writes checkpoints itself"
_RESUME = "resume the job instead"
_BATCH = "set the parameters 'batch_size' and 'micro_batch_size'"
_DEVICES = "the platform selects the devices"
_WEIGHTS = "choose another model for the job"
_DATA = "choose another dataset for the job"
_LORA = "set the parameter 'lora_rank'"
_QUANTISED = "set the parameter 'quantize_base'"

#: Keys that a person cannot set, and what to do instead.
RESERVED: dict[str, str] = {
    **dict.fromkeys(("model_name_or_path", "model_revision", "model_init_kwargs", "dtype"), _WEIGHTS),
    **dict.fromkeys(("train_file", "validation_file"), _DATA),
    **dict.fromkeys(("output_dir", "logging_dir"), "files stay in the job's folder"),
    **dict.fromkeys(("resume_from_checkpoint", "ignore_data_skip"), _RESUME),
    **dict.fromkeys(("save_strategy", "save_only_model", "save_on_each_node"), _SAVING),
    **dict.fromkeys(("enable_jit_checkpoint", "restore_callback_states_from_checkpoint"), _SAVING),
    **dict.fromkeys(("load_best_model_at_end", "metric_for_best_model", "greater_is_better"), _SAVING),
    **dict.fromkeys(("eval_strategy", "eval_on_start", "eval_delay"), "set the validation parameters"),
    **dict.fromkeys(("logging_strategy", "logging_steps", "logging_first_step"), _REPORTING),
    **dict.fromkeys(("logging_nan_inf_filter", "log_on_each_node", "disable_tqdm"), _REPORTING),
    **dict.fromkeys(("report_to", "generate_during_eval", "trackio_space_id"), _REPORTING),
    **dict.fromkeys(("trackio_bucket_id", "trackio_static_space_id"), _REPORTING),
    **dict.fromkeys(("run_name", "project"), _RUN_NAMES),
    **dict.fromkeys(("push_to_hub", "hub_token", "hub_private_repo", "hub_model_id"), _HUB),
    **dict.fromkeys(("hub_strategy", "hub_always_push", "hub_revision"), _HUB),
    **dict.fromkeys(("per_device_train_batch_size", "per_device_eval_batch_size"), _BATCH),
    **dict.fromkeys(("gradient_accumulation_steps", "auto_find_batch_size"), _BATCH),
    **dict.fromkeys(("use_cpu", "local_rank", "ddp_backend", "accelerator_config"), _DEVICES),
    **dict.fromkeys(("parallelism_config", "fsdp", "fsdp_config", "deepspeed"), _DEVICES),
    **dict.fromkeys(("use_peft", "lora_task_type", "lora_modules_to_save"), _LORA),
    **dict.fromkeys(("load_in_4bit", "load_in_8bit"), _QUANTISED),
    **dict.fromkeys(("eos_token", "pad_token"), "the tokenizer comes with the model"),
    "save_total_limit": "set the parameter 'keep_checkpoints'",
    "warmup_ratio": "set the parameter 'warmup_ratio'",
    "remove_unused_columns": "the platform prepares the columns",
    "label_names": "the platform prepares the columns",
}
#: Keys that TRL accepts without heeding them, and what to use instead.
SILENT: dict[str, str | None] = {
    **dict.fromkeys(("do_train", "do_eval", "do_predict", "label_smoothing_factor", "padding_free"), None),
}
