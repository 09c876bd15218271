"""Whether this process is to run on the CPU platform."""

import os

PLATFORM_VARIABLE = "VERL_PLATFORM"
CPU = "cpu"


def is_cpu_platform() -> bool:
    """Whether ``VERL_PLATFORM=cpu`` was asked for; the shims do nothing otherwise."""
    return os.environ.get(PLATFORM_VARIABLE, "").strip().lower() == CPU
