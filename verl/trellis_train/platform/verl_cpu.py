"""The ``verl.plugins`` entry point: registers the CPU platform and installs its patches.

verl loads this module at the end of ``import verl`` in every process, and hides a
failure at DEBUG level; :func:`assert_registered` brings it to light.
"""

from trellis_train.platform.activation import CPU, is_cpu_platform


def register() -> None:
    """Register the platform and install every patch; done once, on import."""
    from verl.plugin.platform import PlatformRegistry

    from trellis_train.platform import gloo_devices
    from trellis_train.platform.device import PlatformCPU
    from trellis_train.platform.imports import patch_after_import
    from trellis_train.platform.patches import (
        distribution_name,
        entropy,
        offload_policy,
        passes,
        process_group,
        sharding_units,
        token_log_probs,
        value_head,
        weight_gathering,
        weight_transfer,
    )

    PlatformRegistry.register(platform=CPU)(PlatformCPU)
    gloo_devices.install()
    process_group.install()
    distribution_name.install()
    for patch in (
        weight_transfer,
        value_head,
        offload_policy,
        sharding_units,
        token_log_probs,
        entropy,
        passes,
        weight_gathering,
    ):
        patch_after_import(patch.MODULE, patch.patch)


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
