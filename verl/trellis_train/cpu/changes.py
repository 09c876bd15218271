"""Registers what is changed in torch, verl and vLLM to train faster on a CPU."""

from typing import Any

from trellis_train.compat.change import change

GLOO, UNITS, LOG_PROBS, ENTROPY = "cpu-gloo-devices", "cpu-sharding-units", "cpu-log-probs", "cpu-entropy"
PROMPTS, GATHERING = "cpu-shared-prompts", "cpu-weight-gathering"
PACKING, THREADS, RANKS = "cpu-packed-weights", "cpu-threads", "cpu-eager-ranks"
INVERSION, HOLDING, MEMORY = "cpu-inversion", "cpu-held-tokens", "cpu-kept-memory"
#: Of the process that all others of a run are forked from, and so of all of them.
FORKING = "cpu-forking"
#: Groups by process: verl's trainers, vLLM's engines, the driver of a run.
TRAINERS = (GLOO, UNITS, LOG_PROBS, ENTROPY, PROMPTS, GATHERING)
ROLLOUT = (GLOO, PACKING, THREADS, RANKS, INVERSION, HOLDING)
DRIVER = (MEMORY,)
_TESTS = "tests/train/cpu"
_ENGINE = "verl.workers.engine.fsdp.transformer_impl"
_RUNNER = "vllm.v1.worker.cpu_model_runner.CPUModelRunner"
_DEVICES: dict[str, Any] = {
    "group": GLOO,
    "kind": "speed",
    "does": "Gives all process groups of a process the same gloo devices.",
    "without": "Every group has threads that look for messages a hundred times a second, used or not.",
    "note": "The class is compiled; what is read is where torch makes its groups.",
    "reads": ("torch.distributed.distributed_c10d._new_process_group_helper",),
    "tests": (f"{_TESTS}/test_gloo_devices.py::test_groups_work_and_their_threads_are_counted",),
}


@change(target="torch.distributed.distributed_c10d.ProcessGroupGloo", **_DEVICES)
def share_devices(original: Any) -> Any:
    """Change the class from which torch creates its groups."""
    from trellis_train.cpu.gloo_devices import on_shared_devices

    return on_shared_devices(original)


@change(target="torch.distributed.ProcessGroupGloo", **_DEVICES)
def share_devices_by_name(original: Any) -> Any:
    """Change the same class under the name that other code imports."""
    from trellis_train.cpu.gloo_devices import on_shared_devices

    return on_shared_devices(original)


@change(
    target="verl.utils.fsdp_utils._select_fsdp2_wrap_targets",
    group=UNITS,
    kind="speed",
    does="Shards layers together where each alone is too small for messages of its own.",
    without="Trainers of a small model wait for each other longer than they compute.",
    tests=(f"{_TESTS}/test_shared_prompts.py::test_losses_and_gradients_are_those_of_verl",),
)
def shard_small_layers_together(original: Any) -> Any:
    """Wrap verl's choice of layers with messages of their own, leaving small ones out."""
    from trellis_train.cpu.sharding_units import selecting_large

    return selecting_large(original)


@change(
    target="verl.utils.torch_functional.logprobs_from_logits_v2",
    group=LOG_PROBS,
    kind="speed",
    does="Takes log-probabilities of some rows at a time.",
    without="Each token is a kernel launch and a node of the backward graph: longer than the rest of a step.",
    tests=(
        f"{_TESTS}/test_token_log_probs.py::test_values_and_gradients_are_those_of_verl",
        f"{_TESTS}/test_token_log_probs.py::test_verl_still_takes_one_row_at_a_time",
    ),
)
def take_log_probs_together(_original: Any) -> Any:
    """Replace verl's function for the labels' log-probabilities by ours."""
    from trellis_train.cpu.token_log_probs import token_log_probs

    return token_log_probs


@change(
    target="verl.utils.torch_functional.entropy_from_logits",
    group=ENTROPY,
    kind="speed",
    does="Computes the gradient of the entropy only where one is asked for.",
    without="Each update has a backward pass through a softmax with a coefficient of zero.",
    tests=(
        f"{_TESTS}/test_entropy.py::test_values_and_gradients_are_those_of_verl",
        f"{_TESTS}/test_entropy.py::test_a_coefficient_of_zero_takes_no_backward_pass",
    ),
)
def derive_entropy_on_demand(_original: Any) -> Any:
    """Replace the entropy of logits."""
    from trellis_train.cpu.entropy import entropy

    return entropy


@change(
    target=f"{_ENGINE}.FSDPEngineWithLMHead.forward_step",
    group=PROMPTS,
    kind="speed",
    does="Passes a prompt through the model once for all of its responses.",
    without="Responses of a group compute their common prompt once each.",
    tests=(f"{_TESTS}/test_shared_prompts.py::test_losses_and_gradients_are_those_of_verl",),
)
def share_prompts(original: Any) -> Any:
    """Wrap the forward step of a pass."""
    from trellis_train.cpu.shared_prompts import sharing_prompts

    return sharing_prompts(original)


@change(
    target=f"{_ENGINE}.FSDPEngineWithLMHead.prepare_model_inputs",
    group=PROMPTS,
    kind="speed",
    does="Leaves out a mask that hides only the ends of rows.",
    without="PyTorch's attention computes what lies ahead of a token, and throws it away.",
    tests=(
        f"{_TESTS}/test_shared_prompts.py::test_losses_and_gradients_are_those_of_verl",
        f"{_TESTS}/test_shared_prompts.py::test_a_mask_of_row_ends_is_left_out_and_positions_count_on",
    ),
)
def leave_out_masks(original: Any) -> Any:
    """Wrap the preparation of a pass's inputs."""
    from trellis_train.cpu.shared_prompts import leaving_out_masks

    return leaving_out_masks(original)


@change(
    target=f"{_ENGINE}.FSDPEngine.get_per_tensor_param",
    group=GATHERING,
    kind="speed",
    does="Gathers the weights of several trainers together before they travel; adds adapters exactly.",
    without="Each parameter is a message that all trainers wait for; merged adapters are rounded.",
    tests=(f"{_TESTS}/test_weight_gathering.py::*",),
)
def gather_weights_together(original: Any) -> Any:
    """Wrap the method that exports the engine's weights."""
    from trellis_train.cpu.weight_gathering import handing_out_whole

    return handing_out_whole(original)


@change(
    target="vllm.model_executor.layers.utils.dispatch_cpu_unquantized_gemm",
    group=PACKING,
    kind="speed",
    does="Packs large weights for oneDNN, anew when new ones have come.",
    without="32 rows times 512 x 3200 take 3.3 ms in the place of 1.6 ms.",
    tests=(f"{_TESTS}/test_packed_weights.py::*",),
)
def pack_live_weights(original: Any) -> Any:
    """Replace the matrix multiplication of linear layers (``compat.vllm_cpu`` keeps the weight alive)."""
    from trellis_train.compat.vllm_cpu import has_fixed_weights
    from trellis_train.cpu.packed_weights import use_packed_weight

    return original if has_fixed_weights() else use_packed_weight


@change(
    target=f"{_RUNNER}.load_model",
    group=PACKING,
    kind="speed",
    does="Counts the weight syncs that a model has received.",
    without="Packed weights would stay those of the first sync.",
    tests=(f"{_TESTS}/test_packed_weights.py::*",),
)
def count_deliveries(original: Any) -> Any:
    """Wrap the runner's loading of its model to count each delivery of weights."""
    from trellis_train.cpu.packed_weights import counting_deliveries

    return counting_deliveries(original)


@change(
    target=f"{_RUNNER}.load_model",
    group=THREADS,
    kind="speed",
    does="Computes with as many threads as the model is worth.",
    without="Threads of a small model wait for each other after every operation: 2.9 s of a step, not 2.6 s.",
    tests=(
        f"{_TESTS}/test_vllm_threads.py::*",
        "tests/train/compat/test_changes_are_needed.py::"
        "test_a_small_model_that_vllms_runner_loaded_is_computed_with_one_thread",
    ),
)
def fit_threads(original: Any) -> Any:
    """Wrap the runner's loading of its model to set a number of threads that suits it."""
    from trellis_train.cpu.vllm_threads import fitting

    return fitting(original)


@change(
    target="vllm.v1.sample.sampler.batched_count_greater_than",
    group=RANKS,
    kind="speed",
    does="Counts ranks without compiling.",
    without="The first step of every engine compiles one comparison for each shape, which takes seconds.",
    tests=(
        "tests/train/compat/test_changes_are_needed.py::test_vllm_still_compiles_the_count_that_we_make_without",
        "tests/train/compat/test_changes_are_needed.py::test_ranks_are_counted_without_compiling",
    ),
)
def count_ranks_eagerly(_original: Any) -> Any:
    """Replace the count of larger log-probabilities."""
    return count_at_least


def count_at_least(x: Any, values: Any) -> Any:
    """Count the elements of each row of ``x`` (rows, elements) that are at least ``values`` (rows, 1)."""
    return (x >= values).sum(-1)


@change(
    target="vllm.v1.sample.ops.topk_topp_sampler.TopKTopPSampler.forward_cpu",
    group=INVERSION,
    kind="speed",
    does="Samples seeded requests by inversion: one random number for a token.",
    without="A random number is drawn for each token of the vocabulary: a sixth of a small model's step.",
    reads=(
        "vllm.v1.sample.ops.topk_topp_sampler.TopKTopPSampler.forward_cpu",
        "vllm.v1.sample.ops.topk_topp_sampler.apply_top_k_top_p",
    ),
    tests=(f"{_TESTS}/test_vllm_sampling.py::*",),
)
def sample_by_inversion(original: Any) -> Any:
    """Wrap vLLM's drawing of tokens to sample by inversion."""
    from vllm.v1.sample.ops import topk_topp_sampler

    from trellis_train.cpu.vllm_sampling import inverting

    return inverting(original, topk_topp_sampler.apply_top_k_top_p)


@change(
    target="vllm.v1.core.sched.scheduler.Scheduler.update_from_output",
    group=HOLDING,
    kind="speed",
    does="Sends up to 16 tokens of a response at a time, where nobody reads it before its end.",
    without="Each token of each response is packed by itself: 4 ms of a step of 27 ms.",
    tests=(f"{_TESTS}/test_vllm_outputs.py::*",),
)
def hold_tokens(original: Any) -> Any:
    """Wrap the scheduler's output of each step."""
    from trellis_train.cpu.vllm_outputs import holding

    return holding(original)


@change(
    target="verl.trainer.ppo.v1.trainer_base.RayWorkerGroup",
    group=MEMORY,
    kind="speed",
    does="Starts trainers with glibc's settings that keep the memory of a pass.",
    without="The kernel clears every page of a pass again for the next one.",
    reads=("verl.single_controller.ray.base.RayWorkerGroup.__init__",),
    tests=(f"{_TESTS}/test_trainer_process.py::*",),
)
def keep_memory(original: Any) -> Any:
    """Wrap verl's group of workers to keep the memory of a pass."""
    import os

    from trellis_train.cpu.trainer_process import with_settings

    return with_settings(original, os.environ)


@change(
    target="ray.actor.ActorClassID",
    group=FORKING,
    kind="fix",
    does="Draws the IDs of actor classes from the system, not from the generator of Ray's core.",
    without="Classes that are declared before a fork seed that generator, and all forked processes then draw "
    "the same IDs of tasks and objects: an actor that two of them call dies of 'Check failed: erased == 1'.",
    note="The class is compiled, and the generator (absl::BitGen) cannot be seeded anew.",
    reads=("ray.actor._make_actor",),
    versions=">=2.50,<3",
    tests=(f"{_TESTS}/test_fork_server.py::test_forked_processes_draw_ids_of_their_own",),
)
def draw_class_ids_from_the_system(original: Any) -> Any:
    """Replace the IDs that Ray gives to actor classes."""
    import os

    class SystemIds:
        """Makes IDs of actor classes."""

        @staticmethod
        def from_random() -> Any:
            return original(os.urandom(original.size()))

    return SystemIds
