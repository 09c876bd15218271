"""What the worker and its child tell each other, as files in the folder of a task."""

import json
import sys
from pathlib import Path
from typing import Any, Literal

from pydantic import Field
from trellis_contracts.data_tasks import RESULT_FILE, Needs, TaskRequest
from trellis_contracts.recipe import Strict

#: Of the child: the version that it has added to the store, for the worker to publish.
MADE_FILE = "made.json"
#: Ends the name of a file that is being written.
DRAFT = ".draft"


Origin = Literal["import", "pipeline", "generate"]


class SourcePlace(Strict):
    """A file or folder on this machine that an import reads, and what it was called."""

    path: str
    name: str
    sha256: str | None = None
    size_bytes: int | None = None


class ChildTask(Strict):
    """A task with everything that the child needs: it asks no database."""

    task_id: str
    request: TaskRequest = Field(discriminator="kind")
    #: Of the versions of all datasets.
    store: str
    data_root: str
    dataset_id: str
    dataset_name: str
    #: The version that is read.
    version: str | None = None
    #: The dataset that rows go to, and the tip of the branch there; None where there is none yet.
    target_id: str | None = None
    tip: str | None = None
    author: str = "admin"
    #: Of an import that reads this machine.
    source: SourcePlace | None = None
    #: Folder of the platform's model that the task names.
    model_dir: str | None = None
    #: Runs what needs the engine's libraries.
    job_python: str = sys.executable
    platform: Literal["cpu", "cuda"] = "cpu"
    #: Tokenizer, judges and further inputs.
    needs: Needs = Field(default_factory=Needs)
    processes: int | None = None
    #: Of the cluster that a run may be carried out on.
    ray_address: str | None = None
    nice: int = 0


class Made(Strict):
    """A version that is in the store and not yet in the database."""

    dataset_id: str
    branch: str
    #: The tip that the version was made for; another one there now refuses it.
    expected: str | None
    version: str
    origin: Origin


def write_made(folder: Path, made: Made) -> None:
    """Let the worker publish a version."""
    (folder / MADE_FILE).write_text(made.model_dump_json(), encoding="utf-8")


def read_made(folder: Path) -> Made | None:
    """Read the version to publish, if the child made one."""
    path = folder / MADE_FILE
    return Made.model_validate_json(path.read_bytes()) if path.exists() else None


def write_result(folder: Path, result: dict[str, Any]) -> None:
    """Leave what the task found."""
    (folder / RESULT_FILE).write_text(json.dumps(result, ensure_ascii=False), encoding="utf-8")


def read_result(folder: Path) -> dict[str, Any]:
    """Read the task's result."""
    result = json.loads((folder / RESULT_FILE).read_text(encoding="utf-8"))
    if not isinstance(result, dict):
        raise ValueError(f"{RESULT_FILE} does not contain a JSON object")
    return result
