"""Programs that print one line when all is well, and raise when not."""

import os
from collections.abc import Mapping
from dataclasses import dataclass

from trellis_contracts.recipe import Engine
from trellis_recipes.platform_defaults import environment

from trellis_cli.gpu_check.check_results import Ground, Row
from trellis_cli.gpu_check.process import run_limited
from trellis_cli.services.platform import python_command

#: vLLM compiles its kernels in the first minutes on a new machine.
LIMIT_S = 600.0

TORCH = """
import torch
assert torch.cuda.is_available(), "torch finds no GPU"
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
assert current_platform.is_cuda(), "vLLM does not use CUDA"
print(vllm.__version__)
"""
VERL = "import verl; from importlib.metadata import version; print(version('verl'))"
TRL = "import trl; print(trl.__version__)"

#: Sums and collects over the ranks that torchrun started, as sharded training does.
COLLECTIVES = """
import os
import sys
import torch
import torch.distributed as distributed
is_gpu = sys.argv[2] == "cuda"
rank = int(os.environ["RANK"])
device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if is_gpu else torch.device("cpu")
if is_gpu:
    torch.cuda.set_device(device)
distributed.init_process_group("nccl" if is_gpu else "gloo")
ranks = distributed.get_world_size()
assert ranks == int(sys.argv[3]), f"{ranks} ranks"
mine = torch.full((1 << 20,), float(rank + 1), device=device)
parts = [torch.empty_like(mine) for _ in range(ranks)]
distributed.all_gather(parts, mine)
assert [float(part.mean()) for part in parts] == [float(number + 1) for number in range(ranks)], parts
distributed.all_reduce(mine)
assert bool((mine == ranks * (ranks + 1) / 2).all()), mine
if rank == 0:
    print(f"all_gather and all_reduce over {ranks} ranks, backend {distributed.get_backend()}")
distributed.destroy_process_group()
"""
#: The engine of an evaluation, greedy, to a fixed length: a model that nobody taught ends anywhere.
GENERATION = """
import sys
from pathlib import Path
model, platform, gpus = sys.argv[1:]
if platform == "cpu":
    from trellis_train.compat import vllm_name
    vllm_name.install()
import vllm
from trellis_contracts.evaluation import EngineSettings
from trellis_train.evaluate.inference import Generation, Inference
settings = EngineSettings(max_model_len=256, tensor_parallel=int(gpus), gpu_memory=0.2)
engine = Inference(Path(model), settings, platform=platform, seed=0)
dtype = engine.describe()["dtype"]
for prompt in ("1+2=", "What is 3+4?", "Sum of 5 and 6:"):
    tokens = engine.tokenizer.encode(prompt)
    engine.submit(prompt, Generation(tokens, max_tokens=16, more={"ignore_eos": True}))
answers = []
while engine.pending:
    answers += engine.step()
engine.close()
assert [answer.error for answer in answers] == [None] * 3, answers
assert [answer.output_tokens for answer in answers] == [16] * 3, answers
print(f"3 answers of 16 tokens on {gpus} device(s), {dtype}, vLLM {vllm.__version__}")
"""


@dataclass(frozen=True)
class Probe:
    """A program; it is told the starter model's folder, the platform and the number of GPUs."""

    name: str
    program: str
    gpus: int = 1
    #: Whether torchrun starts it once for each GPU.
    is_on_each_gpu: bool = False
    package: str | None = None
    limit_s: float = LIMIT_S

    def run(self, ground: Ground) -> Row:
        """Run the program in a process of its own."""
        ended = run_limited(
            self._command(ground), limit_s=self.limit_s, environment=_environment(ground.platform)
        )
        if ended.exit_code is None:
            said = f" ({ended.last_words})" if ended.last_words else ""
            return Row(
                self.name, "failing", f"timed out after {self.limit_s:g} s, killed{said}", ended.seconds
            )
        if ended.exit_code:
            detail = ended.last_words or f"exit code {ended.exit_code}"
            return Row(self.name, "failing", detail, ended.seconds)
        lines = ended.output.strip().splitlines()
        return Row(self.name, "ok", lines[-1] if lines else "", ended.seconds)

    def _command(self, ground: Ground) -> list[str]:
        program = python_command("-c", self.program, str(ground.model), ground.platform, str(self.gpus))
        if not self.is_on_each_gpu:
            return program
        torchrun = ("-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={self.gpus}")
        return [*python_command(*torchrun), "--no-python", *program]


def _environment(platform: str) -> Mapping[str, str]:
    """Return an evaluation's environment, without downloads and telemetry."""
    quiet = {
        "HF_HUB_OFFLINE": "1",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "VLLM_NO_USAGE_STATS": "1",
        # The one line is all that is printed.
        "VLLM_LOGGING_STREAM": "ext://sys.stderr",
        "DO_NOT_TRACK": "1",
        # The engine in the process that asks it; its workers are processes where there are several.
        "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    }
    return {**os.environ, **environment(Engine.EVALUATE, platform), **quiet}


LIBRARIES = (
    Probe("PyTorch", TORCH),
    Probe("NCCL", NCCL),
    Probe("flash attention", FLASH_ATTENTION, package="flash_attn"),
    Probe("vLLM", VLLM),
    Probe("verl", VERL),
    Probe("TRL", TRL),
    Probe("Ray", "import ray; print(ray.__version__)"),
)
#: Without it nothing can run on a GPU.
FOUNDATION = "PyTorch"
COLLECTIVE_PROBE = Probe("NCCL over two ranks", COLLECTIVES, gpus=2, is_on_each_gpu=True)
GENERATION_PROBE = Probe("vLLM generation", GENERATION)
SPLIT_GENERATION_PROBE = Probe("vLLM generation, tensor parallel", GENERATION, gpus=2)
