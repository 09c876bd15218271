"""The process groups of a process share gloo's devices.

torch makes a device for every group, and each has a thread that looks for messages a hundred times a second
for as long as the group lives. vLLM makes a dozen groups in every engine, used or not.
"""

import os
from datetime import timedelta
from functools import cache
from typing import Any

#: Names of network interfaces with commas between, of which torch makes a device each.
INTERFACES_VARIABLE = "GLOO_SOCKET_IFNAME"
#: Which torch starts to carry out the operations of a group.
THREADS_PER_DEVICE = 2


@cache
def on_shared_devices(plain: Any) -> Any:
    """Replace torch's process group by one whose devices are those of the process."""

    class ProcessGroupGloo(plain):
        def __init__(self, store: Any, rank: int, size: int, timeout: timedelta) -> None:
            options = plain._Options()
            options._devices = self.trellis_devices()
            options._threads = THREADS_PER_DEVICE * len(options._devices)
            options._timeout = timeout
            super().__init__(store, rank, size, options)

        @staticmethod
        @cache
        def trellis_devices() -> list[Any]:
            names = os.environ.get(INTERFACES_VARIABLE, "")
            if not names:
                return [plain.create_default_device()]
            return [plain.create_device(interface=name) for name in names.split(",")]

    return ProcessGroupGloo
