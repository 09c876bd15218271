"""Rows of a source as the next version of a dataset."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from trellis_contracts import data_tasks as contracts
from trellis_data.layout import Layout
from trellis_data.pipeline.units import schema_of
from trellis_data.reading.importing import FileReport, ImportReport, Progress, import_rows
from trellis_data.reading.openai_rows import OpenAiSource
from trellis_data.reading.quarantine import QUARANTINE_FILE
from trellis_data.reading.sources import HubSource, LocalSource, S3Source, Source
from trellis_data.versions.records import Provenance, SourceFile
from trellis_data.versions.store import Store
from trellis_data.versions.version_rows import files_of

from trellis_workers.data.files import DRAFT, ChildTask
from trellis_workers.data.handlers.source_splits import Part, part_by_file, part_by_split
from trellis_workers.data.modelscope_source import ModelScopeSource
from trellis_workers.data.recording import Content, Splits, recognise, record
from trellis_workers.data.tools import Tools

FOLDER = "import"
#: Of the files that a result lists.
_MAX_FILES = 200


def carry_out(task: ChildTask, tools: Tools) -> dict[str, Any]:
    """Read the source, keep aside what cannot be read, and add a version."""
    request = _request_of(task)
    work = tools.folder / FOLDER
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    tools.tell_rows("bring", 0)
    source = open_source(task)
    splits, report = _read(source, request, work, tools)
    layout, reason = recognise(splits)
    if request.mode == "append" and task.tip:
        splits, layout, reason = _behind_tip(task, task.tip, splits, (layout, reason))
    _keep_quarantine(task, work)
    content = Content(
        splits,
        layout,
        reason,
        _provenance(task, request, source),
        request.message or f"Import {source.describe()}"[:2000],
        request.branch,
        "import",
        _warnings(report),
    )
    version = record(task, tools, content)
    plain = report.model_dump(mode="json")
    plain["files"] = plain["files"][:_MAX_FILES]
    return {**plain, "format": layout.format.value, "version": version.id}


def open_source(task: ChildTask) -> Source:
    """Open the source of the rows."""
    source = _request_of(task).source
    if isinstance(source, contracts.HubSource) and source.hub == "modelscope":
        return ModelScopeSource(source.repo_id, revision=source.revision, under=source.under)
    if isinstance(source, contracts.HubSource):
        return HubSource(source.repo_id, revision=source.revision, under=source.under)
    if isinstance(source, contracts.S3Source):
        return S3Source(source.url)
    if task.source is None:
        raise ValueError("an import of this machine needs a place")
    kind = OpenAiSource if _request_of(task).form == "openai" else LocalSource
    return kind(Path(task.source.path), name=task.source.name)


def _request_of(task: ChildTask) -> contracts.ImportTask:
    if not isinstance(task.request, contracts.ImportTask):
        raise TypeError(f"{task.request.kind} is no import")
    return task.request


def _read(
    source: Source, request: contracts.ImportTask, work: Path, tools: Tools
) -> tuple[Splits, ImportReport]:
    """Read the rows into Parquet files by split, with one report for all."""
    splits: dict[str, list[Path]] = {}
    reports: list[ImportReport] = []
    found = source.list_files()
    parts = part_by_file(found) if request.is_split_by_file else part_by_split(found, request.split)
    for split, files in parts.items():
        folder = work / split
        report = import_rows(
            Part(source, files), folder, mixed=request.mixed, progress=_teller(tools, reports)
        )
        splits[split] = [folder / name for name in report.shards]
        reports.append(report)
    if not reports:
        # Raises: a source without files that can be read says so itself.
        reports.append(import_rows(source, work / request.split, mixed=request.mixed))
    return splits, _merge(reports)


def _teller(tools: Tools, before: list[ImportReport]) -> Callable[[Progress], None]:
    rows = sum(each.rows for each in before)
    quarantined = sum(each.quarantined for each in before)
    files = sum(len(each.files) for each in before)

    def tell(now: Progress) -> None:
        tools.tell_rows(
            "read",
            rows + now.rows,
            quarantined=quarantined + now.quarantined,
            files_done=files + now.files_done,
            files=files + now.file_count,
        )

    return tell


def _merge(reports: list[ImportReport]) -> ImportReport:
    merged = reports[0]
    for each in reports[1:]:
        reasons = {
            code: merged.reasons.get(code, 0) + each.reasons.get(code, 0)
            for code in [*merged.reasons, *each.reasons]
        }
        files: list[FileReport] = merged.files + each.files
        merged = merged.model_copy(
            update={
                "rows": merged.rows + each.rows,
                "quarantined": merged.quarantined + each.quarantined,
                "reasons": reasons,
                "problems": (merged.problems + each.problems)[:20],
                "warnings": merged.warnings + each.warnings,
                "files": files,
                "shards": merged.shards + each.shards,
                "size_bytes": merged.size_bytes + each.size_bytes,
                "seconds": round(merged.seconds + each.seconds, 3),
            }
        )
    return merged


def _behind_tip(
    task: ChildTask, tip: str, splits: Splits, found: tuple[Layout, str]
) -> tuple[Splits, Layout, str]:
    """Append the rows to the existing ones; the columns keep their roles as long as they exist."""
    store = Store(Path(task.store))
    version = store.version(tip)
    before = files_of(store, version)
    both = {
        name: [*before.get(name, []), *splits.get(name, [])] for name in dict.fromkeys([*before, *splits])
    }
    known = store.tree(version.commit.tree).layout
    names = schema_of([path for paths in both.values() for path in paths]).names
    if known.columns and set(known.columns.values()) <= set(names):
        reason = str(version.commit.provenance.notes.get("format_reason", "")) or "As before."
        return both, known, reason
    return both, *found


def _keep_quarantine(task: ChildTask, work: Path) -> None:
    """Keep rejected rows next to the dataset for users to look at."""
    found = [path for path in sorted(work.glob(f"*/{QUARANTINE_FILE}")) if path.stat().st_size]
    kept = Path(task.data_root) / "datasets" / (task.target_id or task.dataset_id) / "quarantine"
    target = kept / f"{task.task_id}.jsonl"
    target.unlink(missing_ok=True)
    if not found:
        return
    kept.mkdir(parents=True, exist_ok=True)
    draft = target.with_suffix(DRAFT)
    with draft.open("wb") as out:
        for path in found:
            with path.open("rb") as file:
                shutil.copyfileobj(file, out)
    os.replace(draft, target)


def _provenance(task: ChildTask, request: contracts.ImportTask, source: Source) -> Provenance:
    place = task.source
    if request.source.kind == "upload" and place and place.sha256:
        file = SourceFile(name=place.name, sha256=place.sha256, size_bytes=place.size_bytes or 0)
        return Provenance(files=[file])
    address = source.describe() if place is None else place.name
    notes: dict[str, Any] = {"revision": source.revision} if source.revision else {}
    if source.licences:
        notes["licences"] = list(source.licences)
    return Provenance(address=f"{request.source.kind}:{address}".removeprefix("s3:"), notes=notes)


def _warnings(report: ImportReport) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    if report.quarantined:
        message = f"{report.quarantined:,} rows could not be read and were quarantined."
        found.append({"code": "rows_in_quarantine", "message": message, "row_count": report.quarantined})
    for each in report.warnings:
        place = f"{each['source']}, line {each['line']}" if each["line"] else each["source"]
        found.append({"code": each["code"], "message": f"{place}: {each['message']}."})
    return found
