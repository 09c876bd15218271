"""Whether this process is to run on the CPU platform, and on how many threads."""

import os

PLATFORM_VARIABLE = "VERL_PLATFORM"
CPU = "cpu"
THREADS_VARIABLE = "OMP_NUM_THREADS"


def is_cpu_platform() -> bool:
    """Tell whether ``VERL_PLATFORM=cpu`` was requested; the shims do nothing otherwise."""
    return os.environ.get(PLATFORM_VARIABLE, "").strip().lower() == CPU


def threads_of_slot(slots: int) -> int:
    """Return threads for each of ``slots`` processes that compute at the same time on this one's cores."""
    return max(1, len(os.sched_getaffinity(0)) // slots)


def assert_cpu_platform() -> None:
    """Raise where the CPU platform was asked for and verl does not run on it."""
    if is_cpu_platform():
        # Imported here: it imports verl, which the other users of this module must not wait for.
        from trellis_train.platform.verl_cpu import assert_registered

        assert_registered()
