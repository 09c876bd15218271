"""A generation in its folder: it goes on where it stopped, and pays for nothing twice.

The folder keeps replies and the account from the first call on. Rows appear under ``output`` when all
are there: a run that goes on reads the replies again, which costs nothing, and makes the same rows of them.
"""

import json
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import yaml
from trellis_contracts.generation import Generation, MatchCheck, SelfInstruct
from trellis_contracts.ledger import read_spent

from trellis_data.atomic_files import publishing, write_atomically
from trellis_data.generate.asking import Asker
from trellis_data.generate.generated_rows import Output, template_hash
from trellis_data.generate.rejection_sampling import RejectionSampled
from trellis_data.generate.report import GenerationProgress, GenerationReport, Stopped
from trellis_data.generate.seeds import Seed, read_seeds
from trellis_data.generate.self_instruct import SelfInstructing
from trellis_data.layout import Layout
from trellis_data.operator import Context
from trellis_data.pipeline.document import load_document, read_document
from trellis_data.pipeline.problem import PipelineProblem
from trellis_data.pipeline.run_directory import RunDirectory

REPORT_FILE = "generation.json"
SETTINGS_FILE = "generation.yaml"
#: What was paid for: it outlasts a fresh start.
PAID_FOLDER = "paid"
#: Accounts and grades of judges.
JUDGES_FOLDER = "judges"
#: What may change between runs that go on with each other: it does not show in rows.
_INDECISIVE: Any = {
    "name": True,
    "max_cost": True,
    "concurrency": True,
    "retries": True,
    "endpoint": {"key_variable", "requests_per_minute", "input_price", "output_price", "timeout_s"},
}


def generate(
    settings: Generation,
    seeds: Sequence[Path],
    folder: Path,
    *,
    layout: Layout,
    context: Context | None = None,
    address: str | None = None,
    fresh: bool = False,
    on_progress: Callable[[GenerationProgress], None] | None = None,
    should_stop: Callable[[], bool] | None = None,
) -> GenerationReport:
    """Generate rows in ``folder/output/train``, and return a report.

    ``address`` is where the endpoint is at the moment, for a server that has another port whenever it is
    started; rows and replies go by the address in the settings, so that a run can go on all the same.
    ``fresh`` makes the rows anew, of replies that were paid for where they fit. Raises ``PipelineProblem``
    (the folder), ``OperatorProblem`` (seeds, endpoint) and ``RunCancelled``.
    """
    if not seeds:
        raise PipelineProblem("no_input", "No seed file found.")
    work = RunDirectory(folder)
    with work.locked():
        work.enter(_identity(settings, seeds, layout), fresh=fresh)
        report_file = folder / REPORT_FILE
        if work.output.exists() and report_file.exists() and not fresh:
            done = GenerationReport.model_validate_json(report_file.read_text(encoding="utf-8"))
            if done.is_complete:
                return done
        write_atomically(folder / SETTINGS_FILE, _as_yaml(settings))
        paid, stops = folder / PAID_FOLDER, should_stop or (lambda: False)
        with Asker(settings, paid, stops, address=address) as asker:
            run = _Run(settings, seeds, layout, context or Context(), asker, on_progress or (lambda _: None))
            report = run.write(work.output)
            report.judge_cost = read_spent(folder / JUDGES_FOLDER)
        write_atomically(report_file, report.model_dump_json(indent=1))
    return report


class _Run:
    def __init__(
        self,
        settings: Generation,
        files: Sequence[Path],
        layout: Layout,
        context: Context,
        asker: Asker,
        on_progress: Callable[[GenerationProgress], None],
    ) -> None:
        self._settings, self._files, self._layout, self._context = settings, files, layout, context
        self._asker, self._on_progress = asker, on_progress
        self._seeds = 0

    def write(self, destination: Path) -> GenerationReport:
        """Write all rows, replacing those of an earlier run."""
        began = time.monotonic()
        older = destination.with_name(f"{destination.name}-before")
        shutil.rmtree(older, ignore_errors=True)
        with publishing(destination) as draft:
            with Output(draft, self._settings) as output:
                stopped = self._make(output)
            if destination.exists():
                destination.rename(older)
        shutil.rmtree(older, ignore_errors=True)
        return self._report(output, stopped, time.monotonic() - began)

    def _make(self, output: Output) -> Stopped | None:
        method, settings = self._settings.method, self._settings
        if isinstance(method, SelfInstruct):
            made = SelfInstructing(settings, method, self._read(output, None), self._asker, output)
            return made.run(lambda done: self._tell(output, done, method.rows))
        column = method.check.column if isinstance(method.check, MatchCheck) else None
        total = sum(pq.read_metadata(path).num_rows for path in self._files)
        seeds = self._read(output, column)
        sampled = RejectionSampled(settings, method, seeds, self._asker, output, self._context)
        return sampled.run(lambda done: self._tell(output, done, total))

    def _read(self, output: Output, reference: str | None) -> Iterator[Seed]:
        for seed in read_seeds(self._files, self._layout, reference):
            self._seeds += 1
            if isinstance(seed, int):
                output.drop("no_prompt", (seed,))
            else:
                yield seed

    def _tell(self, output: Output, done: int, total: int) -> None:
        progress = GenerationProgress(
            done=done,
            total=total,
            rows=output.rows,
            calls=self._asker.tally.calls,
            cost=self._asker.spent,
            max_cost=self._settings.max_cost,
        )
        self._on_progress(progress)

    def _report(self, output: Output, stopped: Stopped | None, seconds: float) -> GenerationReport:
        settings, tally = self._settings, self._asker.tally
        return GenerationReport(
            name=settings.name,
            method=settings.method.kind,
            model=settings.endpoint.model,
            template_hash=template_hash(settings),
            stopped=stopped,
            rows=output.rows,
            dropped=dict(sorted(output.reasons.items())),
            seeds=self._seeds,
            questions=tally.questions,
            calls=tally.calls,
            problems=dict(sorted(tally.problems.items())),
            input_tokens=tally.input_tokens,
            output_tokens=tally.output_tokens,
            cost=self._asker.spent,
            cost_unsettled=self._asker.unsettled,
            max_cost=settings.max_cost,
            shards=output.shards,
            seconds=seconds,
        )


def _identity(settings: Generation, seeds: Sequence[Path], layout: Layout) -> dict[str, Any]:
    """Return everything that determines the rows, given the replies."""
    looks = [(path, path.stat()) for path in seeds]
    decisive = settings.model_dump(mode="json", exclude=_INDECISIVE)
    return {
        "settings": decisive,
        "seeds": [[str(path.resolve()), look.st_size, look.st_mtime_ns] for path, look in looks],
        "columns": json.loads(json.dumps({"format": layout.format, **layout.columns})),
    }


def _as_yaml(settings: Generation) -> str:
    return yaml.safe_dump(settings.model_dump(mode="json"), sort_keys=False, allow_unicode=True, width=110)


def load_generation(path: Path) -> Generation:
    """Load the settings in a YAML file; raise ``PipelineProblem`` that names the line if they are invalid."""
    text = read_document(path, kind="generation")
    return load_document(
        text, Generation, name=path.name, kind="generation", needs="name, endpoint and method"
    )
