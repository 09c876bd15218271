"""Jobs of this machine alone: composed as the platform composes them, with files for datasets."""

import hashlib
import importlib.util
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from trellis_contracts.agents import AgentTask
from trellis_contracts.attempt import (
    COMPOSITION_FILE,
    PREPARED_FOLDER,
    SPEC_FILE,
    TRAIN_FILE,
    VALIDATION_FILE,
)
from trellis_contracts.gpu_devices import list_visible_gpus
from trellis_contracts.recipe import DataFormat
from trellis_contracts.spec import DataSource, JobSpec, ModelSource

from trellis_cli.errors import ExitCode, Problem

_ATTEMPT, _CHECKPOINTS = "attempt-", "checkpoints"
#: Not a person's to set: a job that trains nothing is not one of the platform's.
_VALIDATION_ONLY = ("trainer.val_only=true",)


@dataclass(frozen=True)
class LocalRows:
    """Rows to train on: a file of JSON lines or Parquet, and what they are read as."""

    path: Path
    format: DataFormat
    columns: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class LocalJob:
    """What a person chooses of a job; ``folder`` gets its attempts and checkpoints."""

    folder: Path
    recipe: str
    model: str
    train: LocalRows
    validation: LocalRows | None = None
    #: Whether the parameter ``validation_rows`` is the most rows of ``validation`` that are measured.
    caps_validation: bool = False
    preset: str | None = None
    params: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    agent: AgentTask | None = None
    #: The environment's folder of a recipe that trains an agent; its parameters make the ``AgentTask``.
    agent_environment: Path | None = None
    seed: int = 0
    #: ``cpu`` or ``cuda``; None for what this machine has.
    platform: str | None = None
    gpus: int = 1
    #: Nodes of the cluster that have equal shares of ``gpus``; on a CPU there is one.
    nodes: int = 1
    #: ``.../global_step_N`` to continue from.
    resume_from: Path | None = None
    #: Whether the model is only measured, as it is, with the validation rows.
    only_validates: bool = False
    #: For the processes of the run, beside what the recipe needs.
    environment: Mapping[str, str] = field(default_factory=dict)


def locate_checkpoints(folder: Path) -> Path:
    """Return the folder with a local job's checkpoints, which its attempts share."""
    return folder / _CHECKPOINTS


def write_spec(job: LocalJob) -> JobSpec:
    """Compose the next attempt and write its spec; ``Problem`` says all that is wrong with the choices."""
    from trellis_api.monitoring.machine import find_device_memory
    from trellis_recipes.catalogue import get_recipe
    from trellis_recipes.compose import ComposeRequest, compose
    from trellis_recipes.memory.architecture import find_architecture

    folder = job.folder.resolve()
    attempt = _next_attempt(folder)
    attempt_dir = folder / f"{_ATTEMPT}{attempt}"
    prepared = attempt_dir / PREPARED_FOLDER
    platform = job.platform or platform_of_machine()
    train = _as_source(job.train, attempt_dir / "rows")
    validation = _as_source(job.validation, attempt_dir / "rows") if job.validation else None
    composition = compose(
        ComposeRequest(
            recipe=job.recipe,
            preset=job.preset,
            params=dict(job.params),
            overrides=dict(job.overrides),
            platform=platform,
            gpus=job.gpus,
            node_gpus=_spread(job) if platform == "cuda" else None,
            model_path=job.model,
            has_flash_attention=importlib.util.find_spec("flash_attn") is not None,
            architecture=find_architecture(Path(job.model)),
            device_memory_bytes=find_device_memory(platform),
            train_path=str(prepared / TRAIN_FILE),
            validation_path=str(prepared / VALIDATION_FILE) if validation else None,
            checkpoint_dir=str(locate_checkpoints(folder)),
            seed=job.seed,
            row_count=train.row_count,
            resume_from=str(job.resume_from.resolve()) if job.resume_from else None,
        )
    )
    if composition.errors:
        reasons = "; ".join(f"{issue.field}: {issue.message}" for issue in composition.errors)
        raise Problem(reasons, exit_code=ExitCode.USAGE)
    if validation is not None and job.caps_validation:
        validation = _take_first(validation, composition.params.get("validation_rows"), attempt_dir / "rows")
    spec = JobSpec(
        # Named after nothing that two folders could share: sockets and queues of a run carry it.
        job_id=f"local_{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}",
        attempt=attempt,
        name=folder.name,
        recipe=job.recipe,
        engine=composition.engine,
        platform=platform,
        gpus=job.gpus,
        seed=job.seed,
        params=composition.params,
        engine_overrides=[*composition.engine_overrides, *(_VALIDATION_ONLY if job.only_validates else [])],
        env={**composition.env, **job.environment},
        model=ModelSource(model_id=job.model, path=job.model),
        row_format=get_recipe(job.recipe).row_format,
        train_data=train,
        validation_data=validation,
        attempt_dir=str(attempt_dir),
        checkpoint_dir=str(locate_checkpoints(folder)),
        resume_from=str(job.resume_from.resolve()) if job.resume_from else None,
        agent=job.agent or _agent_task(job, composition.params),
        # Nobody listens: the run is told so.
        ingest_url="http://127.0.0.1:9",
    )
    prepared.mkdir(parents=True, exist_ok=True)
    description = {"config": composition.config, "command": composition.command}
    (attempt_dir / COMPOSITION_FILE).write_text(json.dumps(description))
    (attempt_dir / SPEC_FILE).write_text(spec.model_dump_json())
    return spec


def _spread(job: LocalJob) -> list[int] | None:
    """Return the GPU count of each node; None for a single node, where the run detects its own."""
    return None if job.nodes == 1 else [job.gpus // job.nodes] * job.nodes


def _take_first(source: DataSource, count: int | None, folder: Path) -> DataSource:
    """Limit a source to its first ``count`` rows; return all of them for None or 0."""
    import pyarrow.parquet as pq

    if not count or count >= source.row_count:
        return source
    (path,) = source.paths
    with pq.ParquetFile(path) as file:
        rows = next(file.iter_batches(count))
        shorter = folder / f"{Path(path).stem}-{count}.parquet"
        folder.mkdir(parents=True, exist_ok=True)
        with pq.ParquetWriter(shorter, file.schema_arrow) as writer:
            writer.write_batch(rows)
    return source.model_copy(update={"paths": [str(shorter)], "row_count": rows.num_rows})


def _agent_task(job: LocalJob, params: dict[str, Any]) -> AgentTask | None:
    from trellis_recipes.agents import make_agent_task
    from trellis_recipes.catalogue import get_recipe

    path = None if job.agent_environment is None else str(job.agent_environment)
    return make_agent_task(get_recipe(job.recipe), params, environment_path=path)


def list_attempts(folder: Path) -> list[Path]:
    """List the folders of a local job's attempts, in order."""
    found = [each for each in folder.glob(f"{_ATTEMPT}*") if each.name.removeprefix(_ATTEMPT).isdigit()]
    return sorted(found, key=_number)


def _next_attempt(folder: Path) -> int:
    """Return the number of the next attempt."""
    attempts = list_attempts(folder)
    return _number(attempts[-1]) + 1 if attempts else 1


def _number(attempt: Path) -> int:
    return int(attempt.name.removeprefix(_ATTEMPT))


def platform_of_machine() -> str:
    """Return ``cuda`` or ``cpu``: what ``TRELLIS_PLATFORM`` says, else what this machine has."""
    from trellis_api.core.settings import Settings

    return Settings().resolved_platform


def require_gpus(count: int) -> int:
    """Return ``count``; raise ``Problem`` if this machine has fewer GPUs (without GPUs: CPU cores)."""
    from trellis_api.monitoring.machine import count_cpus

    if platform_of_machine() == "cuda":
        there, what = len(list_visible_gpus()), "GPUs"
    else:
        there, what = count_cpus(), "CPU cores, one for a process"
    # Whether one is there, the engine finds out: not every GPU is a device file of its own.
    if count > max(1, there):
        raise Problem(
            f"{count} GPUs were asked for, but {there} {what} can be used here",
            hint="use fewer (--gpus, GPUS), or look at nvidia-smi and CUDA_VISIBLE_DEVICES",
            exit_code=ExitCode.USAGE,
        )
    return count


def _as_source(rows: LocalRows, folder: Path) -> DataSource:
    """Return the rows as a Parquet source; convert them into ``folder`` if needed."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not rows.path.is_file():
        raise Problem(f"no such file: {rows.path}", exit_code=ExitCode.USAGE)
    data = rows.path.read_bytes()
    path = rows.path.resolve()
    try:
        if path.suffix != ".parquet":
            lines = [json.loads(line) for line in data.splitlines() if line.strip()]
            path = folder / f"{path.stem}.parquet"
            folder.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.Table.from_pylist(lines), path)
        count = pq.read_metadata(path).num_rows
    except (ValueError, TypeError, AttributeError, pa.ArrowException) as error:
        raise Problem(f"{rows.path} cannot be read as rows: {error}", exit_code=ExitCode.USAGE) from None
    return DataSource(
        dataset_id=rows.path.stem,
        paths=[str(path)],
        format=rows.format,
        columns=rows.columns,
        sha256=hashlib.sha256(data).hexdigest(),
        row_count=count,
    )
