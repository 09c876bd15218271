"""The CPU as one of verl's platforms: a ``PlatformBase`` and the device module behind it.

``torch.cpu`` lacks most of what the trainers call on ``torch.cuda`` (memory
statistics, random state), hence a module object of our own.
"""

# ruff: noqa: ARG002  (the signatures are verl's)
import os
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import torch
from verl.plugin.platform import PlatformBase

CPU_DEVICE = torch.device("cpu")


class CpuDevice(ModuleType):
    """Stands where verl expects ``torch.cuda``."""

    def __init__(self) -> None:
        super().__init__("trellis_cpu_device", "The part of torch.cuda that verl calls, for a CPU.")

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1

    def current_device(self) -> torch.device:
        return CPU_DEVICE

    def set_device(self, device: Any) -> None:
        """Do nothing: there is one device, so nothing to select."""

    def get_device_name(self, device: Any = None) -> str:
        return "cpu"

    def synchronize(self, device: Any = None) -> None:
        """Do nothing: CPU operations are complete when they return."""

    def empty_cache(self) -> None:
        """Do nothing: there is no caching allocator."""

    def ipc_collect(self) -> None:
        """Do nothing: there are no device handles shared between processes."""

    def reset_peak_memory_stats(self, device: Any = None) -> None:
        """Do nothing: peaks are not measured."""

    def set_per_process_memory_fraction(self, fraction: float, device: Any = None) -> None:
        """Ignore the fraction, since the operating system manages memory."""

    def memory_allocated(self, device: Any = None) -> int:
        return 0

    memory_reserved = max_memory_allocated = max_memory_reserved = memory_allocated

    def mem_get_info(self, device: Any = None) -> tuple[int, int]:
        page_bytes = os.sysconf("SC_PAGE_SIZE")
        return os.sysconf("SC_AVPHYS_PAGES") * page_bytes, os.sysconf("SC_PHYS_PAGES") * page_bytes

    def get_rng_state(self, device: Any = None) -> torch.Tensor:
        # Torch's own state: a checkpoint that lacked it could not be resumed exactly.
        return torch.get_rng_state()

    def set_rng_state(self, state: torch.Tensor, device: Any = None) -> None:
        torch.set_rng_state(state)

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    manual_seed_all = manual_seed


class PlatformCPU(PlatformBase):
    """Trains and samples on a CPU, with Ray's logical GPUs as slots."""

    _device_module = CpuDevice()

    @property
    def device_name(self) -> str:
        return "cpu"

    @property
    def vendor_name(self) -> str:
        return "cpu"

    @property
    def device_module(self) -> ModuleType:
        return self._device_module

    def is_available(self) -> bool:
        return True

    def is_platform_available(self, use_smi_check: bool = False) -> bool:
        # Never chosen by detection: a GPU machine without a visible GPU must fail, not crawl.
        return False

    def current_device(self) -> torch.device:
        # An int would be read as a CUDA index by `.to()`.
        return CPU_DEVICE

    def device_count(self) -> int:
        return 1

    def set_device(self, device_index: int) -> None:
        """Do nothing: there is one device, so nothing to select."""

    def synchronize(self, device_index: int | None = None) -> None:
        """Do nothing: CPU operations are complete when they return."""

    def manual_seed(self, seed: int) -> None:
        torch.manual_seed(seed)

    def manual_seed_all(self, seed: int) -> None:
        torch.manual_seed(seed)

    def set_allocator_settings(self, settings: str) -> None:
        """Do nothing: there is no caching allocator."""

    def empty_cache(self) -> None:
        """Do nothing: there is no caching allocator."""

    def get_device_capability(self, device_index: int = 0) -> tuple[int | None, int | None]:
        return None, None

    def communication_backend_name(self) -> str:
        return "gloo"

    def visible_devices_envvar(self) -> str:
        return "CUDA_VISIBLE_DEVICES"

    @contextmanager
    def nvtx_range(self, msg: str) -> Iterator[None]:
        yield

    def profiler_start(self) -> None:
        """Do nothing: there is no device profiler."""

    def profiler_stop(self) -> None:
        """Do nothing: there is no device profiler."""

    def ray_resource_name(self) -> str:
        # verl's pools ask Ray for "GPU"; a CPU node declares logical ones (`ray start --num-gpus=N`).
        return "GPU"

    def ray_noset_envvars(self) -> list[str]:
        return ["RAY_EXPERIMENTAL_NOSET_CUDA_VISIBLE_DEVICES"]

    def is_ipc_supported(self) -> bool:
        # Weights then travel to the rollout server through POSIX shared memory.
        return False

    def cudart(self) -> None:
        return None
