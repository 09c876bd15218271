"""The end of a run: one report of all units, one file of dropped rows a step, outputs in their place."""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

import pyarrow.parquet as pq
from trellis_contracts.pipeline import Pipeline

from trellis_data.atomic_files import publishing, whole_folders
from trellis_data.batching import read_tables
from trellis_data.layout import Layout
from trellis_data.outcome import StepReport
from trellis_data.pipeline.document import pipeline_hash
from trellis_data.pipeline.ledger import Limits, merge
from trellis_data.pipeline.report import FunnelBar, Output, RunReport
from trellis_data.pipeline.run_directory import RunDirectory
from trellis_data.pipeline.shards import ParquetAppender, conform, one_schema
from trellis_data.pipeline.stage import Stage
from trellis_data.pipeline.tasks import FINDINGS, dropped_file, read_seconds

#: Dropped rows that are copied at once.
_GATHERED_ROWS = 8192


def finish(
    pipeline: Pipeline, stages: Sequence[Stage], folder: RunDirectory, limits: Limits, layout: Layout
) -> RunReport:
    """Publish the outputs and say what was done."""
    steps: list[StepReport] = []
    dropped: dict[str, str] = {}
    reduced: dict[str, str] = {}
    with publishing(folder.dropped) as lost:
        for stage in stages:
            units = whole_folders(folder.stage(stage.number) / "units")
            parts = [json.loads((unit / "report.json").read_text())["steps"] for unit in units]
            for number, step in enumerate(stage.plans):
                merged = merge((StepReport.model_validate(part[number]) for part in parts), limits)
                place = folder.dropped_rows(stage.first + number + 1, step.name)
                if _gather([unit / dropped_file(number) for unit in units], lost / place.name, limits):
                    dropped[step.name] = str(place.relative_to(folder.root))
                if stage.is_global and number == 0:
                    where = folder.reduced(stage.first + 1, step.name)
                    merged.findings |= json.loads((where / FINDINGS).read_text())
                    merged.seconds += read_seconds(where)
                    reduced[step.name] = str(where.relative_to(folder.root))
                steps.append(merged)
    outputs = _publish(whole_folders(folder.stage(len(stages) - 1) / "units"), folder)
    rows_in, rows_out = steps[0].rows_in, sum(output.rows for output in outputs.values())
    after = [*(step.rows_in for step in steps[1:]), rows_out]
    bars = [FunnelBar(step=step.name, rows=rows) for step, rows in zip(steps, after, strict=True)]
    return RunReport(
        pipeline=pipeline.name,
        pipeline_hash=pipeline_hash(pipeline),
        rows_in=rows_in,
        rows_out=rows_out,
        format=layout.format,
        columns=layout.columns,
        funnel=[FunnelBar(step=None, rows=rows_in), *bars],
        steps=steps,
        outputs=outputs,
        dropped=dropped,
        reduced=reduced,
        seconds=0.0,
        peak_memory_bytes=0,
    )


def _gather(parts: list[Path], target: Path, limits: Limits) -> int:
    """Write one file of all dropped rows, up to the limit, and return how many it contains."""
    found = [part for part in parts if part.exists()]
    if not found:
        return 0
    schema = one_schema([pq.read_schema(part) for part in found], [part.name for part in found])
    file = ParquetAppender(target)
    for part in found:
        with pq.ParquetFile(part) as rows:
            for table in read_tables(rows, _GATHERED_ROWS):
                room = table.num_rows if limits.dropped is None else max(0, limits.dropped - file.rows)
                file.write(conform(table.slice(0, room), schema))
    file.close()
    return file.rows


def _publish(units: list[Path], folder: RunDirectory) -> dict[str, Output]:
    """Publish the last stage's files as outputs; every split has at least one file, even without rows."""
    rows: dict[str, list[tuple[Path, int]]] = {}
    for unit in units:
        counts: dict[str, int] = json.loads((unit / "report.json").read_text())["rows"]
        for split, count in counts.items():
            rows.setdefault(split, []).append((unit / f"{split}.parquet", count))
    filled = {split: [each for each in parts if each[1]] for split, parts in rows.items()}
    if not any(filled.values()):
        filled = {split: parts[:1] for split, parts in rows.items()}
    outputs: dict[str, Output] = {}
    with publishing(folder.output) as output:
        for split, parts in sorted(filled.items()):
            if not parts:
                continue
            files = []
            for number, (part, _) in enumerate(parts):
                target = output / split / f"part-{number:06d}.parquet"
                target.parent.mkdir(exist_ok=True)
                _link(part, target)
                files.append(target)
            outputs[split] = Output(
                rows=sum(count for _, count in parts),
                files=[str(folder.output.name / file.relative_to(output)) for file in files],
                size_bytes=sum(file.stat().st_size for file in files),
            )
    return outputs


def _link(source: Path, target: Path) -> None:
    """Create a hard link to a file, or a copy if the file system does not support links."""
    try:
        os.link(source, target)
    except OSError:
        shutil.copyfile(source, target)
