"""Options and surroundings of the commands that sample a model without the platform."""

import argparse
import os
from pathlib import Path

from trellis_contracts.recipe import Engine
from trellis_recipes.platform_defaults import environment

from trellis_train.agents.tooluse.sampling import Sampling

#: What the engine of an evaluation runs with on the platform too.
_QUIET = {
    "HF_HUB_OFFLINE": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
}


def add_sampling_options(parser: argparse.ArgumentParser, *, samples: int, temperature: float) -> None:
    """Add options for model, rows and sampling."""
    parser.add_argument("--model", type=Path, required=True, help="a Hugging Face folder")
    parser.add_argument("--data", type=Path, required=True, help="rows (JSON lines or Parquet) with prompts")
    parser.add_argument("--limit", type=_positive, default=None, help="only the first rows")
    parser.add_argument("--samples", type=_positive, default=samples, help="responses to each prompt")
    parser.add_argument("--temperature", type=float, default=temperature)
    parser.add_argument("--top-p", type=float, default=1.0)
    parser.add_argument("--max-tokens", type=_positive, default=512, help="of one response")
    parser.add_argument("--max-model-len", type=_positive, default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--platform", choices=["cpu", "cuda"], default="cpu")


def read_sampling(options: argparse.Namespace) -> Sampling:
    """Read how responses are sampled."""
    return Sampling(
        samples=options.samples,
        temperature=options.temperature,
        top_p=options.top_p,
        max_tokens=options.max_tokens,
        seed=options.seed,
    )


def prepare_process(platform: str) -> None:
    """Set environment and names before torch and vLLM are imported, since they read both then."""
    os.environ.update({**environment(Engine.EVALUATE, platform), **_QUIET})
    if platform == "cpu":
        from trellis_train.compat import vllm_name

        vllm_name.install()


def _positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} must be above 0")
    return value
