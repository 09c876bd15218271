"""What a machine with NVIDIA GPUs needs beside Python packages: driver, compiler, headers, nvcc, flash-attn.

Looked for without loading a library: ``doctor`` runs before every start.
"""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: The first driver of CUDA 13, for which the wheels of gpu.lock are built.
MIN_DRIVER = 580
_TIMEOUT_S = 20
_AGAIN = "then: rm .venv/trellis-lock && ./init.sh"
_JIT = "Triton and vLLM need it to compile kernels while a job runs"


@dataclass(frozen=True)
class Tool:
    """One thing that was looked for."""

    name: str
    is_found: bool
    #: What was found, or what is missing, what for, and how to get it.
    detail: str
    #: Whether jobs run without it.
    is_optional: bool = False


def examine_tools() -> list[Tool]:
    """Look for all of them."""
    return [find_driver(), find_compiler(), find_headers(), *find_flash_attention()]


def query(field: str) -> list[str]:
    """Query a property of each GPU with nvidia-smi; empty if that fails."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return []
    command = [program, f"--query-gpu={field}", "--format=csv,noheader"]
    try:
        done = subprocess.run(  # noqa: S603
            command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return []
    return [line.strip() for line in done.stdout.splitlines() if line.strip()] if done.returncode == 0 else []


def find_driver() -> Tool:
    """Find NVIDIA's driver and check that it is new enough for PyTorch's CUDA."""
    name = "nvidia driver"
    package = f"nvidia-driver-{MIN_DRIVER}-server"
    get = f"install NVIDIA driver {MIN_DRIVER} or newer (Ubuntu: apt-get install -y {package})"
    if shutil.which("nvidia-smi") is None:
        return Tool(name, False, f"nvidia-smi not found: {get}")
    versions = query("driver_version")
    if not versions:
        return Tool(name, False, f"nvidia-smi is not responding: reboot if the driver was updated, or {get}")
    found = re.match(r"\d+", versions[0])
    if found is None or int(found.group()) < MIN_DRIVER:
        return Tool(name, False, f"{versions[0]} is too old for CUDA 13: {get}")
    return Tool(name, True, versions[0])


def find_compiler() -> Tool:
    """Find a C compiler, which Triton needs to compile its launchers."""
    found = next(filter(None, map(shutil.which, ("gcc", "cc", "clang"))), None)
    if found is None:
        return Tool("compiler", False, f"not found; {_JIT}: apt-get install -y build-essential")
    return Tool("compiler", True, found)


def find_headers() -> Tool:
    """Find the C headers of this Python."""
    header = Path(sysconfig.get_path("include"), "Python.h")
    if header.is_file():
        return Tool("Python.h", True, str(header))
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    return Tool("Python.h", False, f"{header} is missing; {_JIT}: apt-get install -y python{version}-dev")


def find_flash_attention() -> Iterator[Tool]:
    """Find flash-attn, or what is missing to build it."""
    name = "flash-attn"
    if importlib.util.find_spec("flash_attn") is not None:
        yield Tool(name, True, "installed")
        return
    without = "not installed: jobs use PyTorch's attention (SDPA) without packing, which is slower"
    yield Tool(name, False, f"{without}; to build it, install what is missing, {_AGAIN}", is_optional=True)
    nvcc = shutil.which("nvcc") or shutil.which("nvcc", path=str(_cuda_home() / "bin"))
    if nvcc is None:
        get = "apt-get install -y cuda-toolkit-13-0, and put /usr/local/cuda/bin on PATH"
        yield Tool("nvcc", False, f"not found, but needed to build flash-attn: {get}", is_optional=True)
    else:
        yield Tool("nvcc", True, nvcc)
    if shutil.which("g++") is None and shutil.which("c++") is None:
        get = "apt-get install -y build-essential"
        yield Tool("g++", False, f"not found, but needed to build flash-attn: {get}", is_optional=True)


def _cuda_home() -> Path:
    return Path(os.environ.get("CUDA_HOME", "/usr/local/cuda"))
