"""Private methods of verl's SFT and merger, of TRL and of vLLM's reload that we override, change or call.

Nothing is installed for these; the engine that uses them has them checked first (``applying.require_group``).
"""

from trellis_train.compat.change import note_method

SFT, PREFERENCE, EXPORT, REPLACEMENT = "sft", "preference", "export", "weights-replacement"
_MERGER = "verl.model_merger.fsdp_model_merger.FSDPModelMerger"
_HF = "transformers.trainer.Trainer"

# -- verl's trainer of supervised fine-tuning (``engines.sft_trainer``) --------------------------------------
_SFT = "verl.trainer.sft_trainer.SFTTrainer"
_SFT_RUN = ("tests/train/engines/test_sft.py::*",)
note_method(
    f"{_SFT}._build_dataloader",
    "overridden",
    "Seeds the order of rows, and keeps few held-out rows.",
    "The order is the same whatever the seed; a validation of few rows measures nothing.",
    kind="fix",
    tests=_SFT_RUN,
    group=SFT,
)
note_method(
    f"{_SFT}._build_ckpt_handler",
    "overridden",
    "Resumes at the end of an epoch with the next one.",
    "verl skips the epoch after the checkpoint.",
    kind="fix",
    tests=_SFT_RUN,
    group=SFT,
)
note_method(
    "verl.utils.checkpoint.checkpoint_handler.CheckpointHandler._load_dataloader_state",
    "on_object",
    "Leaves out the state of a loader that is at its end.",
    "verl skips the epoch after the checkpoint.",
    kind="fix",
    tests=_SFT_RUN,
    group=SFT,
)

_ROWS = "verl.utils.dataset.multiturn_sft_dataset.MultiTurnSFTDataset"
_WEIGHTS = (
    "tests/train/data/test_message_weights.py::test_the_mask_of_a_turn_of_weight_0_is_empty",
    "tests/train/data/test_token_view.py::test_a_turn_of_weight_0_is_read_and_not_learned",
)
note_method(
    f"{_ROWS}._process_single_message",
    "overridden",
    "Masks turns of the assistant whose weight is 0.",
    "Every turn of the assistant is learned.",
    tests=_WEIGHTS,
    group=SFT,
)
note_method(
    f"{_ROWS}._build_messages",
    "overridden",
    "Leaves out weights that a row does not have.",
    "Chat templates see a weight of nothing.",
    tests=_WEIGHTS,
    group=SFT,
)

# -- TRL's trainers (``preference``) -------------------------------------------------------------------------
_PREFERENCE = ("tests/proof/test_preference.py::*",)
note_method(
    "trl.trainer.dpo_trainer.DPOTrainer._precompute_ref_logps",
    "overridden",
    "Says 0 of every row: DPO without a reference.",
    "TRL 1.x has no `reference_free`.",
    kind="fix",
    tests=_PREFERENCE,
    group=PREFERENCE,
)
note_method(
    f"{_HF}._get_output_dir",
    "overridden",
    "Writes checkpoints aside until they are complete.",
    "A killed run leaves half a checkpoint that looks whole.",
    kind="fix",
    tests=(
        "tests/train/preference/test_reporting.py::"
        "test_what_a_killed_attempt_left_unfinished_goes_when_the_next_one_saves",
    ),
    group=PREFERENCE,
)
note_method(
    f"{_HF}._save_checkpoint",
    "overridden",
    "Announces a checkpoint that is complete.",
    "The platform knows of no checkpoints.",
    tests=_PREFERENCE,
    group=PREFERENCE,
)
note_method(
    f"{_HF}._load_from_checkpoint",
    "overridden",
    "Reads weights from the folder that models have.",
    "A run cannot be resumed.",
    tests=_PREFERENCE,
    group=PREFERENCE,
)
note_method(
    f"{_HF}._load_optimizer_and_scheduler",
    "overridden",
    "Restores the optimizer on a CPU.",
    "accelerate numbers the CPU of a rank, and torch restores nothing to a numbered one.",
    kind="fix",
    tests=_PREFERENCE,
    group=PREFERENCE,
)
note_method(
    "transformers.training_args.TrainingArguments._setup_devices",
    "on_object",
    "Names the CPU without a number.",
    "The optimizer of a resumed run begins anew.",
    kind="fix",
    tests=_PREFERENCE,
    group=PREFERENCE,
)

# -- verl's dataset without its start-up (``data.lean_verl``), and the engine that TRL is timed with --------
note_method(
    "transformers.processing_utils.ProcessorMixin",
    "on_object",
    "Spares processors of images.",
    "The view of tokens takes seconds more to open.",
    kind="speed",
    reads=(
        "verl.utils.dataset.multiturn_sft_dataset.MultiTurnSFTDataset.__init__",
        "verl.utils.tokenizer.hf_tokenizer",
    ),
    tests=("tests/train/data/test_token_view.py::*",),
    group="data",
)
note_method(
    "trl.generation.vllm_generation.LLM",
    "on_object",
    "Gives TRL's sampler the type of the weights.",
    "TRL samples in bfloat16 from a model in single precision.",
    kind="fix",
    reads=("trl.generation.vllm_generation.VLLMGeneration._init_vllm",),
    tests=("tests/tools/bench/test_grpo_bench.py::*",),
    group="comparison",
)

# -- verl's merger of shards (``export.shards``) -------------------------------------------------------------
for _name in (
    "_get_world_size",
    "_extract_device_mesh_info",
    "_calculate_shard_configuration",
    "_merge_by_placement",
):
    note_method(
        f"{_MERGER}.{_name}",
        "called",
        "Is called to put shards together in their precision.",
        "verl casts everything to bfloat16.",
        kind="fix",
        tests=("tests/train/export/test_shards.py::*",),
        group=EXPORT,
    )

# -- vLLM's reload of weights in a running engine (``serve_gate``, ``serve_worker``) -----------------------
_RELOADED = ("tests/train/engines/test_serve_real.py::*",)
note_method(
    "vllm.v1.worker.gpu_model_runner.GPUModelRunner.reload_weights",
    "called",
    "Loads a newer checkpoint into the engine that serves an older one.",
    "The newer one needs an engine of its own.",
    note="Its worker's method is public, but documented for engines that a trainer drives.",
    reads=(
        "vllm.v1.worker.gpu_model_runner.GPUModelRunner.reload_weights",
        "vllm.model_executor.model_loader.reload.layerwise.finalize_layerwise_processing",
    ),
    kind="speed",
    tests=_RELOADED,
    group=REPLACEMENT,
)
note_method(
    "vllm.model_executor.layers.vocab_parallel_embedding.UnquantizedEmbeddingMethod"
    ".process_weights_after_loading",
    "called",
    "Packs a tied output layer anew after a reload, on a CPU.",
    "vLLM reloads the embedding and leaves the packed copy of a tied output layer as it was, without a word.",
    kind="fix",
    tests=_RELOADED,
    group=REPLACEMENT,
)
note_method(
    "vllm.entrypoints.openai.models.serving.OpenAIModelRegistry.is_base_model",
    "on_object",
    "Serves the newer checkpoint under its own name: the first of the `base_model_paths` is renamed.",
    "Answers carry the older one's name, and requests that name it get the newer one's.",
    reads=(
        "vllm.entrypoints.openai.models.serving.OpenAIModelRegistry.is_base_model",
        "vllm.entrypoints.openai.models.serving.OpenAIServingModels.__init__",
    ),
    tests=_RELOADED,
    group=REPLACEMENT,
)
