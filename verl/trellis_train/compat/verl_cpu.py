"""What verl needs before it runs on a CPU (group ``verl-cpu``)."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from trellis_train.compat.change import change

GROUP = "verl-cpu"
_TESTS = "tests/train/compat/test_changes_are_needed.py"
#: What `verl.utils.distributed` composes on this platform; torch rejects it as a duplicate.
DUPLICATE = "cpu:gloo,cpu:gloo"


@change(
    target="torch.distributed.init_process_group",
    group=GROUP,
    kind="required",
    does="Accepts verl's backend string, which names the CPU twice on a CPU.",
    without="Training ends with `Duplicate device type cpu in backend string`.",
    reads=(
        "torch.distributed.distributed_c10d.init_process_group",
        "verl.utils.distributed.initialize_global_process_group_ray",
    ),
    versions=">=2.13,<2.14",
    tests=(
        f"{_TESTS}::test_the_backend_string_that_verl_composes_is_still_the_one_that_torch_rejects",
        f"{_TESTS}::test_a_process_group_with_verls_backend_string_starts",
    ),
)
def accept_one_device(original: Any) -> Any:
    """Wrap ``init_process_group`` to treat verl's duplicate device as one."""

    @wraps(original)
    def init_process_group(backend: str | None = None, *args: Any, **kwargs: Any) -> Any:
        return original("cpu:gloo" if backend == DUPLICATE else backend, *args, **kwargs)

    return init_process_group


@change(
    target="verl.workers.engine.fsdp.transformer_impl.CPUOffloadPolicy",
    group=GROUP,
    kind="required",
    does="Keeps offloaded weights in ordinary memory, whatever the caller asks.",
    without="The reference model asks for pinned memory, which needs an accelerator.",
    tests=(
        f"{_TESTS}::test_verls_reference_model_still_asks_for_pinned_memory",
        f"{_TESTS}::test_every_patch_is_in_place",
    ),
)
def keep_unpinned(original: Any) -> Any:
    """Return the policy without pinned memory."""

    def unpinned_policy(pin_memory: bool = True) -> Any:  # noqa: ARG001 (the original's signature)
        return original(pin_memory=False)

    return unpinned_policy


@change(
    target="verl.utils.model.load_valuehead_model",
    group=GROUP,
    kind="required",
    does="Loads critics and reward heads with PyTorch's own attention (`sdpa`).",
    without="PPO ends at its critic: flash attention has no CPU kernel.",
    upstream="https://github.com/verl-project/verl/issues/5210",
    tests=(
        f"{_TESTS}::test_verls_value_heads_still_ask_for_flash_attention",
        f"{_TESTS}::test_every_patch_is_in_place",
    ),
)
def load_with_sdpa(_original: Any) -> Any:
    """Replace the loader of value heads by one whose attention runs on a CPU."""

    def load_valuehead_model(
        local_path: str, torch_dtype: Any, model_config: Any, trust_remote_code: bool
    ) -> Any:
        from transformers import AutoModelForTokenClassification

        return AutoModelForTokenClassification.from_pretrained(
            local_path,
            dtype=torch_dtype,
            config=model_config,
            attn_implementation="sdpa",
            trust_remote_code=trust_remote_code,
        )

    return load_valuehead_model


@change(
    target=(
        "verl.workers.rollout.vllm_rollout.bucketed_weight_transfer.BucketedWeightReceiver.receive_weights"
    ),
    group=GROUP,
    kind="required",
    does="Clones received weights, so that the shared buffer that they came in can be closed and reused.",
    without="The first weight sync ends with `cannot close exported pointers exist`.",
    tests=(
        f"{_TESTS}::test_received_weights_do_not_alias_the_buffer_they_came_in",
        f"{_TESTS}::test_every_patch_is_in_place",
    ),
)
def clone_received(original: Any) -> Any:
    """Wrap ``receive_weights`` so that its callback owns its tensors (``.to("cpu")`` copies nothing here)."""

    @wraps(original)
    def receive_weights(self: Any, on_bucket_received: Callable[[Any, bool], None]) -> None:
        def with_clones(weights: Any, is_last: bool) -> None:
            clones = [(name, tensor.clone()) for name, tensor in weights]
            weights.clear()  # the receiver keeps this list alive while it closes the buffer
            on_bucket_received(clones, is_last)

        original(self, with_clones)

    return receive_weights
