"""Brings what a configuration names to this machine: models and datasets of the hub by their ids.

A folder or file that is here is taken as it is; the hub's own variables say where it is and with which token.
"""

import hashlib
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from trellis_data.guarded_clients import GuardedModelScope, guard_hub
from trellis_data.operator import OperatorProblem
from trellis_recipes.hub_models import fetch_model, first_line
from trellis_recipes.hub_names import CONFIG_FILE, NoHubModel, is_hub_id, is_hub_model

from trellis_train.agents.tune.mapping import MappedJob, MappedRows
from trellis_train.agents.tune.row_files import find_row_faults, join_evaluations
from trellis_train.agents.tune.signature import Fault

MODEL_KEY = "model.model_path"
TASKSET_KEY = "buffer.explorer_input.taskset"
EVAL_KEY = "buffer.explorer_input.eval_tasksets"


def bring(job: MappedJob, *, has_weights: bool) -> tuple[MappedJob, list[Fault]]:
    """Resolve the job's paths on this machine and list what is neither here nor on the hub.

    Without ``has_weights`` a model's id is looked up and its weights stay where they are.
    """
    model, faults = _bring_model(job.model, has_weights=has_weights)
    train, found = _bring_rows(job.train, TASKSET_KEY)
    faults += found
    validation = job.validation
    if validation is not None:
        validation, found = _bring_rows(validation, EVAL_KEY)
        faults += found
    if job.evaluations:
        validation, found = _bring_evaluations(job.evaluations)
        faults += found
    return replace(job, model=model, train=train, validation=validation), faults


def join_local(job: MappedJob) -> tuple[MappedJob, list[Fault]]:
    """Join the job's evaluations if all are files on this machine; nothing is downloaded.

    Where one is elsewhere, the job stays as it is.
    """
    if not job.evaluations or not all(Path(rows.path).is_file() for rows in job.evaluations.values()):
        return job, []
    validation, faults = _bring_evaluations(job.evaluations)
    return replace(job, validation=validation), faults


def _bring_model(name: str, *, has_weights: bool) -> tuple[str, list[Fault]]:
    if (Path(name) / CONFIG_FILE).is_file():
        return name, []
    if Path(name).exists() or not is_hub_model(name):  # a path of two parts that is here goes before
        return name, [Fault("NO_MODEL", MODEL_KEY, "a folder with a model (config.json)", name)]
    try:
        _guard_hub()
        return fetch_model(name, has_weights=has_weights, modelscope=GuardedModelScope()), []
    except (NoHubModel, OperatorProblem) as error:
        wanted = f"a folder with a model (config.json), or a model of the hub ({error})"
        return name, [Fault("NO_MODEL", MODEL_KEY, wanted, name)]
    except ValueError as error:
        return name, [Fault("NO_MODEL", MODEL_KEY, "weights in 16 or 32 bits", str(error))]


def _bring_rows(rows: MappedRows, place: str) -> tuple[MappedRows, list[Fault]]:
    path = Path(rows.path)
    if path.is_file():
        if rows.subset is not None:
            got = f"{rows.subset}, and {rows.path} is a file, which has none"
            return rows, [Fault("BAD_ROWS", f"{place}.subset_name", "no subset of a file", got)]
        return rows, []
    if not path.is_dir() and not is_hub_id(rows.path):
        wanted = "a file of JSON lines or Parquet, a folder of them, or a dataset of the hub"
        return rows, [Fault("NO_DATASET", f"{place}.path", wanted, rows.path)]
    target = _rows_file(rows)
    try:
        if not target.is_file() or path.is_dir():  # a folder's files may have changed
            _fetch_rows(rows, target)
    except (OSError, ValueError) as error:
        wanted = f"rows of the split {rows.split} in a folder or a dataset of the hub ({first_line(error)})"
        return rows, [Fault("NO_DATASET", f"{place}.path", wanted, rows.path)]
    return replace(rows, path=str(target)), []


def _bring_evaluations(evaluations: Mapping[str, MappedRows]) -> tuple[MappedRows | None, list[Fault]]:
    """Write one file with the rows of all evaluations; None where some cannot be loaded."""
    faults: list[Fault] = []
    brought: dict[str, MappedRows] = {}
    for place, (name, rows) in enumerate(evaluations.items()):
        key = f"{EVAL_KEY}.{place}"
        brought[name], found = _bring_rows(rows, key)
        faults += found or find_row_faults(brought[name], f"{key}.path")
    if faults:
        return None, faults
    return join_evaluations(brought, _rows_folder()), []


def _fetch_rows(rows: MappedRows, target: Path) -> None:
    """Write a split as one Parquet file."""
    from datasets import load_dataset

    _guard_hub()
    loaded = load_dataset(rows.path, rows.subset, split=rows.split, token=os.environ.get("HF_TOKEN") or None)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(f".{os.getpid()}.partial")
    loaded.to_parquet(draft)
    draft.replace(target)


def _guard_hub() -> None:
    """Restrict the hub's client to allowed addresses, since the hub's responses name further ones."""
    from huggingface_hub import constants

    guard_hub(constants.ENDPOINT)


def _rows_file(rows: MappedRows) -> Path:
    place = str(Path(rows.path).resolve()) if Path(rows.path).is_dir() else rows.path
    name = hashlib.sha256("\0".join((place, rows.subset or "", rows.split)).encode()).hexdigest()[:24]
    return _rows_folder() / f"{name}.parquet"


def _rows_folder() -> Path:
    home = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return home / "trellis" / "tasksets"
