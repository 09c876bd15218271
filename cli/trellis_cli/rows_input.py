"""What commands on local data take as rows: a run's folder, Parquet files, or other files to read first."""

import contextlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError
from rich.markup import escape

from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import err

if TYPE_CHECKING:
    from trellis_contracts.pipeline import Pipeline
    from trellis_data.formats.detection import Candidate
    from trellis_data.layout import Layout
    from trellis_data.pipeline.report import RunReport
    from trellis_data.reading.mixing import Mixed

Format = Annotated[str | None, typer.Option("--format", help="Data format; default: auto-detected.")]
Columns = Annotated[
    list[str] | None, typer.Option("--column", help="Column mapping as ROLE=COLUMN; repeatable.")
]
_DETECTED_ROWS = 200
#: In a run's folder.
_REPORT_FILE = "report.json"
#: In a folder of imported rows: what they were read from.
_STAMP_FILE = "source.json"
#: Codes that say that the request is wrong rather than the rows.
_USAGE = (
    "generation_",
    "pipeline_",
    "operator_",
    "param_",
    "name_",
    "version_",
    "column_",
    "store_missing",
    "folder_taken",
    "work_folder_taken",
    "page_unfit",
)


@dataclass(frozen=True)
class Rows:
    """Parquet files by split, what their columns mean where that is known, and the run that wrote them."""

    splits: dict[str, list[Path]]
    layout: "Layout | None" = None
    report: "RunReport | None" = None

    @property
    def files(self) -> list[Path]:
        """All files in order."""
        return [path for paths in self.splits.values() for path in paths]


@contextlib.contextmanager
def mapped_errors() -> Iterator[None]:
    """Convert problems of the data factory to those of the command line."""
    from trellis_data.operator import OperatorProblem
    from trellis_data.pipeline.problem import PipelineProblem
    from trellis_data.reading.problems import UnreadableFile
    from trellis_data.reading.sources import SourceUnavailable
    from trellis_data.versions.records import StoreProblem

    try:
        yield
    except (PipelineProblem, OperatorProblem, StoreProblem, UnreadableFile, SourceUnavailable) as problem:
        code = ExitCode.USAGE if problem.code.startswith(_USAGE) else ExitCode.FAILED
        raise Problem(problem.message, exit_code=code) from problem


def find_rows(paths: Sequence[Path], imported: Path | None = None, *, anew: bool = False) -> Rows:
    """Find the rows in files and folders; what is not Parquet is first converted into ``imported``, once.

    Rows of another source that lie there already are replaced where ``anew``, and refused otherwise.
    """
    if len(paths) == 1 and (paths[0] / _REPORT_FILE).exists():
        report = _read_report(paths[0])
        return Rows(report.files(paths[0]), report.layout, report)
    if len(paths) == 1 and (version := _version_rows(str(paths[0]))):
        return version
    if len(paths) == 1 and (folders := _split_folders(paths[0])):
        return Rows(folders)
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise Problem(f"not found: {', '.join(missing)}", exit_code=ExitCode.USAGE)
    if files := _parquet_files(paths):
        return Rows({"train": files})
    if imported is None or len(paths) != 1:
        raise Problem(
            "this command requires Parquet files",
            hint="convert other files with trellis data import FILE --to FOLDER",
            exit_code=ExitCode.USAGE,
        )
    _import_once(paths[0], imported, anew=anew)
    return Rows({"train": sorted(imported.glob("*.parquet"))})


def _read_report(folder: Path) -> "RunReport":
    from trellis_data.pipeline.report import RunReport

    try:
        return RunReport.model_validate_json((folder / _REPORT_FILE).read_bytes())
    except ValidationError:
        raise Problem(
            f"{folder / _REPORT_FILE} is not a run report",
            hint="specify the Parquet files instead of their folder, or move that file elsewhere",
            exit_code=ExitCode.USAGE,
        ) from None


def _import_once(source: Path, folder: Path, *, anew: bool) -> None:
    """Read ``source`` into ``folder``, unless just that was done before."""
    from trellis_data.reading.importing import REPORT_FILE

    stamp, state = folder / _STAMP_FILE, _state_of(source)
    if stamp.exists() and stamp.read_text() == state:
        return
    if stamp.exists() and not anew:
        raise Problem(
            f"{folder} contains rows from another file, or the file has changed",
            hint="choose another --output, or start over with --no-resume",
            exit_code=ExitCode.USAGE,
        )
    if folder.exists() and not (folder / REPORT_FILE).exists():
        raise Problem(f"{folder} already exists and is not a run folder", hint="choose another --output")
    # Without a stamp it is of a command that was killed before any row of it was used.
    shutil.rmtree(folder, ignore_errors=True)
    report = import_into(str(source), folder)
    stamp.write_text(state)
    if report.quarantined:
        err.print(f"[yellow]{report.quarantined:,} rows cannot be read:[/yellow] {folder}/quarantine.jsonl")
    show_warnings(report)


def show_warnings(report: Any) -> None:
    """Say what is wrong with the files of an import beside their rows."""
    for each in report.warnings:
        place = f"{each['source']}, line {each['line']}" if each["line"] else each["source"]
        more = f" (and {each['count'] - 1:,} more)" if each["count"] > 1 else ""
        err.print("[yellow]warning:[/yellow]", escape(f"{place}: {each['message']}{more}"))


def _state_of(source: Path) -> str:
    """Return the paths, sizes and times of a file or a folder's files, to detect whether they change."""
    files = sorted(path for path in source.rglob("*") if path.is_file()) if source.is_dir() else [source]
    looks = [(path, path.stat()) for path in files]
    return json.dumps([[str(path.resolve()), look.st_size, look.st_mtime_ns] for path, look in looks])


def import_into(source: str, folder: Path, mixed: "Mixed" = "quarantine") -> Any:
    """Read a file, a folder, ``hub:ID[@REVISION]`` or ``s3://…`` into a folder; the report."""
    from trellis_data.reading.importing import import_rows
    from trellis_data.reading.sources import HubSource, LocalSource, S3Source, Source

    chosen: Source
    if source.startswith("hub:"):
        repository, _, revision = source.removeprefix("hub:").partition("@")
        chosen = HubSource(repository, revision=revision or "main")
    elif source.startswith("s3://"):
        chosen = S3Source(source)
    else:
        chosen = LocalSource(Path(source))
    folder.parent.mkdir(parents=True, exist_ok=True)
    with mapped_errors(), err.status(f"reading {chosen.describe()}") as status:
        return import_rows(
            chosen,
            folder,
            mixed=mixed,
            progress=lambda now: status.update(
                f"reading {now.file}: {now.rows:,} rows, {now.quarantined:,} in quarantine"
            ),
        )


def find_layout(
    rows: Rows,
    pipeline: "Pipeline | None" = None,
    *,
    name: str | None = None,
    columns: Sequence[str] | None = None,
) -> "Layout":
    """Find what the columns mean: stated by the command or the pipeline, else known, else detected."""
    from trellis_contracts.pipeline import Pipeline, Step
    from trellis_contracts.recipe import DataFormat
    from trellis_data.layout import Layout
    from trellis_data.pipeline.check import stated_layout
    from trellis_data.pipeline.units import schema_of

    stated: dict[str, Any] = {"format": name} if name else {}
    if columns:
        stated["columns"] = dict(_role(each) for each in columns)
    if stated or pipeline is None:
        pipeline = Pipeline.model_validate({"name": "-", "steps": [Step(operator="-")], **stated})
    with mapped_errors():
        if layout := stated_layout(pipeline, schema_of(rows.files)) or rows.layout:
            return layout
    likeliest = next(iter(detect_formats(rows.files)), None)
    return Layout(likeliest.format, likeliest.columns) if likeliest else Layout(DataFormat.UNKNOWN)


def detect_formats(files: Sequence[Path]) -> "list[Candidate]":
    """Detect which formats the first rows may have, the most likely first."""
    from trellis_data.formats.detection import detect
    from trellis_data.pipeline.preview import take_rows
    from trellis_data.pipeline.touched_rows import draw
    from trellis_data.pipeline.units import schema_of

    with mapped_errors():
        return detect(take_rows(files, schema_of(files), draw(files, _DETECTED_ROWS, None)))


def _role(text: str) -> tuple[str, str]:
    role, equals, column = text.partition("=")
    if not equals or not role or not column:
        raise Problem(f"--column takes ROLE=COLUMN, not '{text}'", exit_code=ExitCode.USAGE)
    return role, column


def _version_rows(text: str) -> Rows | None:
    """Find the rows of ``STORE[@REVISION]``, or None if that is not a store of versions."""
    from trellis_data.versions.store import MAIN, Store
    from trellis_data.versions.version_rows import files_of

    folder, _, revision = (text, "", MAIN) if Path(text).exists() else text.rpartition("@")
    if not folder or not (Path(folder) / "refs").is_dir():
        return None
    with mapped_errors():
        store = Store(Path(folder))
        version = store.version(revision)
        return Rows(files_of(store, version), store.tree(version.commit.tree).layout)


def _split_folders(path: Path) -> dict[str, list[Path]]:
    """Find the Parquet files of the folders in a folder that contains nothing else."""
    if not path.is_dir() or any(path.glob("*.parquet")):
        return {}
    folders = {each.name: sorted(each.glob("*.parquet")) for each in sorted(path.iterdir()) if each.is_dir()}
    return folders if folders and all(folders.values()) else {}


def _parquet_files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        found = sorted(path.glob("*.parquet")) if path.is_dir() else [path]
        if not found or any(each.suffix != ".parquet" for each in found):
            return []
        files += found
    return files
