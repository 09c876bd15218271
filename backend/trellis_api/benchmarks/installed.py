"""The files of installed benchmarks: where they lie, and what a run is told of them.

``<data_root>/benchmarks/<name>/`` appears complete or not at all: see
``trellis_workers/evaluations/install.py``. ``source.json`` in it names
its files by part, in the order of their rows.
"""

import json
from pathlib import Path

from pydantic import BaseModel, ValidationError
from trellis_contracts.evaluation import BenchmarkFiles

from trellis_api.benchmarks.errors import BenchmarkMissing
from trellis_api.core.settings import Settings

SOURCE_FILE = "source.json"
FOLDER = "benchmarks"


class InstalledSource(BaseModel):
    """``source.json``: where the files came from, and what they are."""

    name: str
    #: ``hub`` or ``mirror``.
    origin: str
    repo_id: str
    #: Commit of the hub's repository; None for a mirror, which has none.
    revision: str | None
    #: Of all files together, part by part.
    sha256: str
    files: dict[str, list[str]]
    rows: dict[str, int]
    groups: dict[str, dict[str, int]]
    size_bytes: int
    installed_at: str


def locate_benchmarks(settings: Settings) -> Path:
    """Return the folder of all installed benchmarks."""
    return settings.data_root / FOLDER


def locate_benchmark(settings: Settings, name: str) -> Path:
    """Return the folder of one installed benchmark."""
    return locate_benchmarks(settings) / name


def read_source(settings: Settings, name: str) -> InstalledSource:
    """Read the record of a benchmark's installed files; ``BenchmarkMissing`` if they are gone or damaged."""
    folder = locate_benchmark(settings, name)
    try:
        source = InstalledSource.model_validate(json.loads((folder / SOURCE_FILE).read_text("utf-8")))
    except (OSError, ValueError, ValidationError) as error:
        raise BenchmarkMissing(
            f"The files of benchmark '{name}' are missing or corrupted. Reinstall it.", {"benchmark": name}
        ) from error
    missing = [file for files in source.files.values() for file in files if not (folder / file).is_file()]
    if missing:
        raise BenchmarkMissing(
            f"Benchmark '{name}' is missing {missing[0]}. Reinstall it.", {"benchmark": name}
        )
    return source


def describe_files(settings: Settings, name: str) -> BenchmarkFiles:
    """Describe a benchmark's files for a run: paths, revision and hashes."""
    source, folder = read_source(settings, name), locate_benchmark(settings, name)
    return BenchmarkFiles(
        paths={part: [str(folder / file) for file in files] for part, files in source.files.items()},
        revision=source.revision,
        sha256=source.sha256,
    )
