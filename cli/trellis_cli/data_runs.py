"""`trellis data import | detect | run | preview | operators | stats`: the data factory on local files."""

import json
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from trellis_cli.data_context import Judges, Resources, Tokenizer, make_context
from trellis_cli.errors import ExitCode, Problem
from trellis_cli.output import Json, duration, err, out, print_json, print_table, size
from trellis_cli.rows_input import (
    Columns,
    Format,
    Rows,
    detect_formats,
    find_layout,
    find_rows,
    import_into,
    mapped_errors,
    show_warnings,
)

if TYPE_CHECKING:
    from trellis_data.pipeline.preview import PreviewStep
    from trellis_data.pipeline.report import RunReport

PipelineFile = Annotated[
    Path, typer.Argument(exists=True, dir_okay=False, help=("Pipeline YAML; see docs/data.md."))
]
_PARQUET = "Parquet files, a folder with them, a run's folder, or STORE@REVISION"
Input = Annotated[
    list[Path],
    typer.Option("--input", "-i", help=f"{_PARQUET}, or a file to import first."),
]


def import_rows(
    source: Annotated[str, typer.Argument(help="File, folder, hub:ID\\[@REVISION] or s3://BUCKET/KEY.")],
    to: Annotated[Path, typer.Option(help="New folder for the Parquet files.")],
    mixed: Annotated[
        Literal["quarantine", "text"],
        typer.Option(
            help=(
                "For columns that mix numbers and text: keep the first type and quarantine the rest, "
                "or convert all to text."
            )
        ),
    ] = "quarantine",
    as_json: Json = False,
) -> None:
    """Import data files as Parquet; invalid rows go to a quarantine file with the reason."""
    if to.exists():
        raise Problem(f"{to} already exists", hint="choose a new folder", exit_code=ExitCode.USAGE)
    report = import_into(source, to, mixed)
    if as_json:
        print_json(report.model_dump(mode="json"))
        return
    out.print(f"{report.rows:,} rows in {len(report.shards)} files in {to}")
    if report.quarantined:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in report.reasons.items())
        out.print(f"[yellow]{report.quarantined:,} rows in quarantine[/yellow]: {reasons}")
    show_warnings(report)


def detect(
    path: Annotated[list[Path], typer.Argument(help="Parquet files or a folder with them.")],
    as_json: Json = False,
) -> None:
    """Detect the data format, with confidence and reasons, most likely first."""
    found = detect_formats(find_rows(path).files)
    if as_json:
        print_json([each.model_dump(mode="json") for each in found])
    elif not found:
        out.print("unknown: the columns match no format")
    else:
        print_table(
            ("format", "sure", "columns", "why"),
            [
                (
                    each.shape.value,
                    f"{each.confidence:.0%}",
                    ", ".join(f"{role}: {column}" for role, column in each.columns.items()),
                    " ".join(each.reasons),
                )
                for each in found
            ],
        )


def run(
    pipeline: PipelineFile,
    input_: Input,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Run folder, for rows, report and dropped rows.")
    ],
    processes: Annotated[
        int | None, typer.Option(min=1, help=("Number of processes; default: one per core."))
    ] = None,
    executor: Annotated[
        Literal["processes", "inline", "ray"],
        typer.Option(help="Where to process shards; for ray, set RAY_ADDRESS."),
    ] = "processes",
    tokenizer: Tokenizer = None,
    resource: Resources = None,
    judge: Judges = None,
    data_format: Format = None,
    column: Columns = None,
    resume: Annotated[bool, typer.Option(help="Resume the run in the output folder, or start over.")] = True,
    keep_dropped: Annotated[
        int | None, typer.Option(min=0, help="Number of dropped rows to keep per step; default: all.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Run a data pipeline; an interrupted run resumes."""
    with mapped_errors():
        from trellis_data.pipeline.document import load_pipeline_file
        from trellis_data.pipeline.runner import Options
        from trellis_data.pipeline.runner import run as run_pipeline

        asked = load_pipeline_file(pipeline)
        rows = find_rows(input_, output / "imported", anew=not resume)
        options = Options(fresh=not resume, executor=executor, dropped=keep_dropped)
        if processes:
            options = replace(options, processes=processes)
        layout = find_layout(rows, asked, name=data_format, columns=column)
        with _Bar(quiet=as_json) as bar:
            report = run_pipeline(
                asked, rows.files, output, layout=layout, options=options, on_progress=bar.show,
                context=make_context(asked.tokenizer, tokenizer, resource, judge, grades=output / "judges"),
            )  # fmt: skip
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        _show_report(report, output)


def preview(
    pipeline: PipelineFile,
    input_: Input,
    rows: Annotated[int, typer.Option(min=1, max=1000)] = 20,
    random: Annotated[bool, typer.Option(help="Sample rows instead of taking the first ones.")] = False,
    changed: Annotated[
        bool, typer.Option(help="Search for rows that a step changes or drops (20,000 rows, 3 s).")
    ] = False,
    tokenizer: Tokenizer = None,
    resource: Resources = None,
    judge: Judges = None,
    data_format: Format = None,
    column: Columns = None,
    as_json: Json = False,
) -> None:
    """Preview each step on a few rows without writing anything."""
    with mapped_errors():
        from trellis_data.pipeline.document import load_pipeline_file
        from trellis_data.pipeline.preview import preview as preview_pipeline

        asked = load_pipeline_file(pipeline)
        found = find_rows(input_)
        with TemporaryDirectory() as grades:
            shown = preview_pipeline(
                asked, found.files, rows=rows, at_random=random, find_changed=changed,
                layout=find_layout(found, asked, name=data_format, columns=column),
                context=make_context(asked.tokenizer, tokenizer, resource, judge, grades=Path(grades)),
                characters=300,
            )  # fmt: skip
    if as_json:
        print_json(shown.model_dump(mode="json"))
        return
    if shown.rows_searched is not None:
        err.print(f"{shown.rows_searched:,} rows searched; {shown.rows_touched} of those shown change")
    for step in shown.steps:
        _show_step(step)


def operators(
    operator: Annotated[str | None, typer.Argument(help="Operator ID, to show its parameters.")] = None,
    as_json: Json = False,
) -> None:
    """List the operators a data pipeline can use."""
    with mapped_errors():
        from trellis_data.catalogue import describe, find_operator
        from trellis_data.catalogue import operators as all_operators

        if operator is None:
            described = [describe(each) for each in all_operators().values()]
        else:
            described = [describe(find_operator(operator))]
    if as_json:
        print_json(described if operator is None else described[0])
    elif operator is None:
        print_table(
            ("id", "group", "title", "what it does"),
            [(each["id"], each["group"], each["title"]["en"], each["help"]["en"]) for each in described],
        )
    else:
        _show_operator(described[0])


def stats(
    path: Annotated[list[Path], typer.Argument(help=f"{_PARQUET}.")],
    tokenizer: Tokenizer = None,
    data_format: Format = None,
    column: Columns = None,
    as_json: Json = False,
) -> None:
    """Compute statistics: rows, lengths, turns, languages, duplicates."""
    found = summarise_rows(find_rows(path), tokenizer, data_format, column)
    if as_json:
        print_json(found.model_dump(mode="json"))
        return
    duplicates = "unknown" if found.duplicates is None else f"{found.duplicates:,}"
    out.print(f"{found.rows:,} rows, {found.format.value}, {duplicates} of them the same as one before")
    lengths = [("characters", found.characters), ("tokens", found.tokens), ("turns", found.turns)]
    print_table(
        ("length", "least", "half below", "9 of 10 below", "most"),
        [
            (name, each.least, f"{each.quantile(0.5):.0f}", f"{each.quantile(0.9):.0f}", each.most)
            for name, each in lengths
            if each is not None and each.count
        ],
    )
    for title, counts in (("speakers", found.roles), ("languages", found.languages)):
        if counts:
            out.print(
                f"{title}: " + ", ".join(f"{name} {count:,}" for name, count in counts.items()), markup=False
            )
    print_table(
        ("column", "type", "values", "nulls", "empty"),
        [(each.name, each.type, each.values, each.nulls, each.empty) for each in found.columns],
    )


def summarise_rows(
    rows: Rows, tokenizer: Path | None = None, name: str | None = None, columns: list[str] | None = None
) -> Any:
    """Compute the statistics of rows and show progress meanwhile."""
    with mapped_errors(), err.status("counting") as status:
        from trellis_data.statistics.collect import Depth, summarise

        done = 0

        def tick(count: int) -> None:
            nonlocal done
            done += count
            status.update(f"counting: {done:,} rows")

        return summarise(
            rows.splits, find_layout(rows, name=name, columns=columns), Depth(tokenizer=tokenizer), tick
        )


def register(app: typer.Typer) -> None:
    """Add the commands to `trellis data`."""
    app.command("import")(import_rows)
    for command in (detect, run, preview, operators, stats):
        app.command()(command)


class _Bar:
    """A progress bar on stderr; nothing where nobody looks."""

    def __init__(self, *, quiet: bool) -> None:
        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(),
        )
        self._progress = Progress(*columns, console=err, disable=quiet or not err.is_terminal, transient=True)
        self._task = self._progress.add_task("starting", total=None, rate="")

    def __enter__(self) -> "_Bar":
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def show(self, now: Any) -> None:
        """Show how far a run is."""
        what = f"{now.stage}/{now.stages} {now.phase}: {', '.join(now.steps)}"
        rate = f"{now.rows_done:,} of {now.rows:,} rows, {now.rows_per_s:,.0f}/s"
        self._progress.update(
            self._task, description=what, completed=now.rows_done, total=now.rows, rate=rate
        )


def _show_report(report: "RunReport", folder: Path) -> None:
    print_table(
        ("step", "rows", "changed", "dropped", "why", "time"),
        [
            (
                step.name,
                f"{step.rows_in:,}",
                f"{step.changed:,}",
                f"{step.dropped:,}",
                ", ".join(f"{reason} {count:,}" for reason, count in step.reasons.items()),
                duration(step.seconds),
            )
            for step in report.steps
        ],
    )
    memory = size(report.peak_memory_bytes)
    out.print(
        f"{report.rows_in:,} rows in, {report.rows_out:,} out, {report.seconds:.1f} s, at most {memory}"
    )
    for split, output in report.outputs.items():
        out.print(
            f"  {split}: {output.rows:,} rows, {size(output.size_bytes)} in {folder / 'output' / split}"
        )
    if report.dropped:
        out.print(f"  dropped rows with their reasons: {folder / 'dropped'}")


def _show_step(step: "PreviewStep") -> None:
    lines = []
    for row in step.rows:
        if row.state == "dropped":
            lines.append(f"  row {row.position} dropped ({row.reason}): {_line(row.before)}")
        elif row.state == "changed":
            lines.append(f"  row {row.position}: {_line(row.before)}")
            lines += [f"  {' ' * len(str(row.position))}  → {_line(after)}" for after in row.after]
    report = step.report
    head = f"{report.rows_in} rows, {report.changed} changed, {report.dropped} dropped"
    out.print(f"[bold]{escape(report.name)}[/bold]  {head}", soft_wrap=True)
    for line in lines:
        out.print(line, markup=False, highlight=False, soft_wrap=True)


def _show_operator(described: dict[str, Any]) -> None:
    out.print(f"[bold]{described['id']}[/bold]  {described['title']['en']} / {described['title']['zh']}")
    out.print(described["help"]["en"], markup=False)
    out.print(described["help"]["zh"], markup=False)
    rows = []
    for name, about in described["params_schema"].get("properties", {}).items():
        extra = about.get("help_texts", {})
        default = json.dumps(about["default"], ensure_ascii=False) if "default" in about else "required"
        rows.append((name, default, _bounds(about), extra.get("en", about.get("description", ""))))
    print_table(("parameter", "default", "values", "what it does"), rows)


def _bounds(about: dict[str, Any]) -> str:
    """Describe briefly which values a parameter may have."""
    options = about.get("anyOf", [about])
    said = []
    for option in options:
        if "enum" in option:
            said.append(" | ".join(map(str, option["enum"])))
            continue
        bounds = [
            f"{sign} {option[key]}"
            for key, sign in (
                ("minimum", "≥"),
                ("exclusiveMinimum", ">"),
                ("maximum", "≤"),
                ("exclusiveMaximum", "<"),
            )
            if key in option
        ]
        said.append(" ".join([option.get("type", "object"), *bounds]))
    return " or ".join(said)


def _line(row: dict[str, Any]) -> str:
    text = json.dumps(row, ensure_ascii=False)
    return text if len(text) <= 400 else f"{text[:400]}…"
