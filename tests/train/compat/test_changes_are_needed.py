"""Each change of the engines is in place, and is still needed: an upgrade shows here what can go."""

import importlib.metadata
import inspect
import json
import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from trellis_testing.engine_changes import changed
from trellis_testing.engine_code import needs_cpu_build

# Two processes that import verl and vLLM: a minute and a half of a core.
pytestmark = pytest.mark.slow

CPU_ENVIRONMENT = {"VERL_PLATFORM": "cpu", "VERL_ENGINE_DEVICE": "cuda"}
#: What the processes of a job have besides (``trellis_train.engines.cluster``).
JOB_ENVIRONMENT = {"TRELLIS_RUN": "job_a-2", "VERL_USE_EXTERNAL_MODULES": "trellis_train.compat.job"}

#: What a process without the variable sees: verl and vLLM as they are.
PLAIN = """
    import sys, importlib.metadata, inspect, json, torch.distributed
    version, init = importlib.metadata.version, torch.distributed.init_process_group
    import verl, trellis_train.platform.verl_cpu, trellis_train.platform.vllm_cpu
    import verl.utils.distributed, verl.utils.model
    from verl.plugin.platform import PlatformRegistry
    from verl.workers.engine.fsdp import transformer_impl
    import vllm.model_executor.layers.utils as layers
    dispatch = layers.dispatch_cpu_unquantized_gemm
    trellis_train.platform.vllm_cpu.register()
    print(json.dumps({
        "is_untouched": [
            importlib.metadata.version is version,
            torch.distributed.init_process_group is init,
            layers.dispatch_cpu_unquantized_gemm is dispatch,
            not any(type(finder).__module__.startswith("trellis") for finder in sys.meta_path),
        ],
        "platforms": PlatformRegistry.registered_names(),
        "process_group": inspect.getsource(verl.utils.distributed.initialize_global_process_group_ray),
        "value_head": inspect.getsource(verl.utils.model.load_valuehead_model),
        "engine": inspect.getsource(transformer_impl),
        "dispatch": inspect.getsource(dispatch),
    }))
"""
#: What a process on the CPU platform sees.
PATCHED = """
    import os, socket, json, importlib.metadata
    from types import SimpleNamespace
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0)); port = s.getsockname()[1]
    os.environ.update(RANK="0", WORLD_SIZE="1", LOCAL_RANK="0")
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    import torch.distributed, verl
    from trellis_train.platform.verl_cpu import assert_registered
    from verl.utils.device import get_device_id, get_resource_name
    assert_registered()
    from verl.utils.distributed import initialize_global_process_group_ray
    initialize_global_process_group_ray()
    import verl.utils.model
    import verl.workers.engine.fsdp.transformer_impl as engine
    import verl.workers.rollout.vllm_rollout.bucketed_weight_transfer as transfer

    def made_by(function):
        # The function of ours in which it was defined.
        code = function.__code__
        return f"{function.__globals__['__name__']}.{code.co_qualname.partition('.')[0]}"

    def find_sockets():
        # Where verl's sender and receiver of weights meet.
        os.environ.update(RAY_LOCAL_WORLD_SIZE="1", VERL_RAY_JOB_ID="01000000")
        import ray
        from verl.workers.config import RolloutConfig
        from verl.workers.rollout.vllm_rollout.utils import vLLMColocateWorkerExtension
        from verl.workers.rollout.vllm_rollout.vllm_rollout import ServerAdapter
        ray.get_runtime_context = lambda: SimpleNamespace(get_job_id=lambda: "01000000")
        sender = ServerAdapter(RolloutConfig(name="vllm"), model_config=None, device_mesh=None)
        receiver = object.__new__(vLLMColocateWorkerExtension)  # its __new__ ties it to a parent
        receiver.local_rank, receiver.model_runner = 0, None
        return [sender.zmq_handle, receiver._get_zmq_handle()]

    def count_threads():
        # The threads of two that torch is left with when vLLM's runner has loaded a small model.
        from vllm.plugins import load_general_plugins
        load_general_plugins()
        import vllm.v1.worker.cpu_model_runner as runners
        class Model(torch.nn.Linear):
            def load_weights(self, weights):
                pass
        runners.get_model = lambda vllm_config: Model(4, 4)
        runner = object.__new__(runners.CPUModelRunner)
        runner.model_config, runner.vllm_config = SimpleNamespace(model="small"), None
        runner.lora_config, runner.use_aux_hidden_state_outputs = None, False
        torch.set_num_threads(2)
        torch.set_num_threads = lambda _: None  # as vLLM's worker does before it loads a model
        runner.load_model()
        return torch.get_num_threads()

    print(json.dumps({
        "device": [str(get_device_id()), get_resource_name()],
        "backend": torch.distributed.get_backend(),
        "version": importlib.metadata.version("vllm"),
        "value_head": made_by(verl.utils.model.load_valuehead_model),
        "is_pinned": engine.CPUOffloadPolicy().pin_memory,
        "receiver": made_by(transfer.BucketedWeightReceiver.receive_weights),
        "sockets": find_sockets(),
        "threads": count_threads() if "+cpu" in torch.__version__ else None,
    }))
    torch.distributed.destroy_process_group()
"""


def run_python(code: str, **environment: str) -> dict[str, Any]:
    """What a fresh interpreter prints as JSON: a process is patched when verl is first imported."""
    clean = {name: value for name, value in os.environ.items() if name not in CPU_ENVIRONMENT}
    result = subprocess.run(
        [sys.executable, "-c", dedent(code)],
        env=clean | environment,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert result.returncode == 0, result.stderr[-2000:]
    return json.loads(result.stdout.strip().splitlines()[-1])


@pytest.fixture(scope="module")
def plain() -> dict[str, Any]:
    return run_python(PLAIN)


@pytest.fixture(scope="module")
def patched() -> dict[str, Any]:
    return run_python(PATCHED, **CPU_ENVIRONMENT, **JOB_ENVIRONMENT)


def test_importing_verl_registers_the_cpu_platform_by_itself(patched: dict[str, Any]) -> None:
    assert patched["device"] == ["cpu", "GPU"]


def test_without_the_variable_nothing_is_changed(plain: dict[str, Any]) -> None:
    assert plain["is_untouched"] == [True, True, True, True]


def test_verl_itself_has_no_cpu_platform(plain: dict[str, Any]) -> None:
    assert "cpu" not in plain["platforms"]


def test_the_backend_string_that_verl_composes_is_still_the_one_that_torch_rejects(
    plain: dict[str, Any],
) -> None:
    assert 'f"cpu:gloo,{get_device_name()}:{get_nccl_backend()}"' in plain["process_group"]


def test_a_process_group_with_verls_backend_string_starts(patched: dict[str, Any]) -> None:
    assert patched["backend"] == "cpu:gloo"


@needs_cpu_build
def test_the_cpu_build_of_vllm_is_not_called_vllm() -> None:
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.distribution("vllm")


@needs_cpu_build
def test_the_version_of_vllm_is_that_of_its_cpu_build(patched: dict[str, Any]) -> None:
    assert patched["version"] == importlib.metadata.version("vllm-cpu") + "+cpu"


def test_verls_value_heads_still_ask_for_flash_attention(plain: dict[str, Any]) -> None:
    assert "flash_attention_2" in plain["value_head"]


def test_verls_reference_model_still_asks_for_pinned_memory(plain: dict[str, Any]) -> None:
    assert "CPUOffloadPolicy(pin_memory=True)" in plain["engine"]


@needs_cpu_build
def test_vllm_still_packs_linear_weights_of_its_cpu_build(plain: dict[str, Any]) -> None:
    assert "layer.weight = torch.nn.Parameter(torch.empty(0)" in plain["dispatch"]


def test_every_patch_is_in_place(patched: dict[str, Any]) -> None:
    assert patched["value_head"] == "trellis_train.compat.verl_cpu.load_with_sdpa"
    assert patched["receiver"] == "trellis_train.compat.verl_cpu.clone_received"
    assert patched["is_pinned"] is False


def test_sender_and_receiver_of_weights_agree_on_a_socket_of_the_job(patched: dict[str, Any]) -> None:
    own = "ipc:///tmp/rl-colocate-zmq-job_a-2-01000000-replica-0-rank-0.sock"

    assert patched["sockets"] == [own, own]


@needs_cpu_build
def test_a_small_model_that_vllms_runner_loaded_is_computed_with_one_thread(patched: dict[str, Any]) -> None:
    assert patched["threads"] == 1


def test_received_weights_do_not_alias_the_buffer_they_came_in() -> None:
    import torch

    buffer = torch.zeros(4)

    def receive_weights(self: Any, on_bucket_received: Any) -> None:
        on_bucket_received([("w", buffer[:2])], True)

    receive = changed("BucketedWeightReceiver.receive_weights", receive_weights)
    received: list[tuple[str, torch.Tensor]] = []

    receive(None, lambda weights, is_last: received.extend(weights))
    buffer += 1

    assert received[0][1].tolist() == [0.0, 0.0]


@needs_cpu_build
def test_vllm_still_compiles_the_count_that_we_make_without() -> None:
    # Read, not imported: importing the sampler takes as long as the rest of this file.
    folder = Path(str(importlib.metadata.distribution("vllm-cpu").locate_file("vllm")))
    definition = (folder / "v1/sample/ops/logprobs.py").read_text()
    sampler = (folder / "v1/sample/sampler.py").read_text()

    ranks = "batched_count_greater_than"
    assert f"@torch.compile(backend=current_platform.simple_compile_backend)\ndef {ranks}(" in definition
    assert "return (x >= values).sum(-1)" in definition
    assert f"import {ranks}" in sampler


def test_ranks_are_counted_without_compiling() -> None:
    import torch

    count = changed("sampler.batched_count_greater_than", None)
    logits = torch.tensor([[0.1, 0.7, 0.2], [0.5, 0.3, 0.2]])

    assert count(logits, torch.tensor([[0.2], [0.5]])).tolist() == [2, 1]


def test_the_device_module_has_the_random_state_that_a_checkpoint_keeps() -> None:
    import torch
    from trellis_train.platform.device import CpuDevice

    device = CpuDevice()
    device.manual_seed(7)
    state = device.get_rng_state()
    first = torch.rand(3)

    device.set_rng_state(state)

    assert torch.equal(torch.rand(3), first)
    assert inspect.ismodule(device)
