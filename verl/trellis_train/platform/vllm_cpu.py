"""The ``vllm.general_plugins`` entry point: installs what vLLM needs on a CPU that a trainer shares."""

from trellis_train.platform.activation import is_cpu_platform


def register() -> None:
    """Install the changes, once per process, on a CPU only."""
    if not is_cpu_platform():
        return
    from trellis_train.compat import vllm_cpu
    from trellis_train.compat.applying import apply
    from trellis_train.platform.layer import load_layer

    apply(vllm_cpu.GROUP)
    load_layer().change_rollout_engine()
