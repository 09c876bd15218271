"""The ``verl.plugins`` entry point: registers the CPU platform and installs what verl needs on it.

verl loads this module at the end of ``import verl`` in every process, and hides a
failure at DEBUG level; :func:`assert_registered` brings it to light.
"""

from trellis_train.platform.activation import CPU, is_cpu_platform


def register() -> None:
    """Register the platform and install the changes; done once, on import."""
    from verl.plugin.platform import PlatformRegistry

    from trellis_train.compat import verl_cpu, vllm_name
    from trellis_train.compat.applying import apply
    from trellis_train.platform.device import PlatformCPU
    from trellis_train.platform.layer import load_layer

    PlatformRegistry.register(platform=CPU)(PlatformCPU)
    apply(vllm_name.GROUP)
    apply(verl_cpu.GROUP)
    load_layer().change_trainer()


def assert_registered() -> None:
    """Raise unless ``import verl`` left this process on the CPU platform."""
    from verl.plugin.platform import get_platform  # importing verl loads the entry points

    name = get_platform().device_name
    if name != CPU:
        raise RuntimeError(
            f"verl runs on platform {name!r}, not on the CPU: the entry point of group verl.plugins "
            "was not loaded (is trellis-platform installed in this environment?)"
        )


if is_cpu_platform():
    register()
