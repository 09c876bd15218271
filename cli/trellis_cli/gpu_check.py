"""`trellis gpu-check`: does a machine with NVIDIA GPUs have what the GPU recipes need?

Each check runs in a process of its own: this package never imports torch, and a crash of one library
does not hide the state of the next.
"""

import subprocess
from typing import NamedTuple

from trellis_cli.doctor import gpu_names
from trellis_cli.output import print_table, styled
from trellis_cli.services.platform import python_command


class Probe(NamedTuple):
    """A program that prints one line when all is well, and raises when not."""

    name: str
    program: str


TORCH = """
import torch
assert torch.cuda.is_available(), "torch sees no GPU"
ones = torch.ones(512, 512, device="cuda", dtype=torch.bfloat16)
assert float((ones @ ones)[0, 0]) == 512.0
print(torch.__version__, "CUDA", torch.version.cuda, torch.cuda.get_device_name(0))
"""
NCCL = """
import torch
import torch.distributed as distributed
store = distributed.TCPStore("127.0.0.1", 0, 1, True)
distributed.init_process_group("nccl", store=store, rank=0, world_size=1)
ones = torch.ones(8, device="cuda")
distributed.all_reduce(ones)
assert float(ones.sum()) == 8.0
print(".".join(map(str, torch.cuda.nccl.version())))
distributed.destroy_process_group()
"""
FLASH_ATTENTION = """
import flash_attn
import torch
query = torch.randn(1, 16, 2, 64, device="cuda", dtype=torch.bfloat16)
assert torch.isfinite(flash_attn.flash_attn_func(query, query, query, causal=True)).all()
print(flash_attn.__version__)
"""
VLLM = """
import vllm
from vllm.platforms import current_platform
assert current_platform.is_cuda(), "vLLM does not run on CUDA here"
print(vllm.__version__)
"""
VERL = "import verl; from importlib.metadata import version; print(version('verl'))"
PROBES = (
    Probe("PyTorch", TORCH),
    Probe("NCCL", NCCL),
    Probe("flash attention", FLASH_ATTENTION),
    Probe("vLLM", VLLM),
    Probe("verl", VERL),
    Probe("Ray", "import ray; print(ray.__version__)"),
)


def run_gpu_check() -> bool:
    """Print a table; True when every check passed."""
    names = gpu_names()
    rows = [("driver", "ok" if names else "failing", ", ".join(names) or "nvidia-smi names no GPU")]
    for probe in PROBES:
        done = subprocess.run(  # noqa: S603 - fixed programs
            python_command("-c", probe.program), capture_output=True, text=True, timeout=600, check=False
        )
        lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
        rows.append((probe.name, "ok" if done.returncode == 0 else "failing", lines[-1] if lines else ""))
    print_table(("check", "state", ""), [(name, styled(state), detail) for name, state, detail in rows])
    return all(state == "ok" for _, state, _ in rows)
