"""`trellis data generate`: rows that a model behind an endpoint writes."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trellis_cli.data_context import Judges, make_context
from trellis_cli.output import Json, err, out, print_json
from trellis_cli.rows_input import Columns, Format, find_layout, find_rows, mapped_errors

if TYPE_CHECKING:
    from trellis_data.generate.report import GenerationProgress, GenerationReport


def generate(
    settings: Annotated[
        Path, typer.Argument(exists=True, dir_okay=False, help=("Settings YAML; see docs/data.md."))
    ],
    input_: Annotated[
        list[Path],
        typer.Option("--input", "-i", help="Seed rows: Parquet files, a folder, or a file to import."),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help=("Output folder, for rows, report and cached responses."))
    ],
    judge: Judges = None,
    data_format: Format = None,
    column: Columns = None,
    resume: Annotated[bool, typer.Option(help="Resume from the output folder, or start over.")] = True,
    as_json: Json = False,
) -> None:
    """Generate data with a model; interrupted runs resume without paying twice."""
    with mapped_errors(), err.status("starting") as status:
        from trellis_data.generate.run import JUDGES_FOLDER, generate, load_generation

        asked = load_generation(settings)
        rows = find_rows(input_, output / "imported", anew=not resume)
        report = generate(
            asked, rows.files, output,
            layout=find_layout(rows, name=data_format, columns=column),
            context=make_context(None, None, None, judge, grades=output / JUDGES_FOLDER),
            fresh=not resume,
            on_progress=lambda now: status.update(_say(now)),
        )  # fmt: skip
    if as_json:
        print_json(report.model_dump(mode="json"))
    else:
        _show(report, output)


def _say(now: "GenerationProgress") -> str:
    cost = f"${now.cost:.4f} of ${now.max_cost:g}"
    return f"{now.done:,} of {now.total:,}: {now.rows:,} rows, {now.calls:,} calls, {cost}"


def _show(report: "GenerationReport", folder: Path) -> None:
    out.print(f"{report.rows:,} rows in {folder / 'output' / 'train'}, {report.seconds:.1f} s", markup=False)
    tokens = f"{report.input_tokens:,} tokens in, {report.output_tokens:,} out"
    known = report.questions - report.calls
    out.print(f"{report.questions:,} questions ({known:,} of them not asked anew), {tokens}")
    unsettled = (
        f", up to ${report.cost_unsettled:.4f} for calls that were cut off" if report.cost_unsettled else ""
    )
    judged = f", judges ${report.judge_cost:.4f}" if report.judge_cost else ""
    out.print(f"${report.cost:.4f} of ${report.max_cost:g}{unsettled}{judged}")
    for title, counts in (("not kept", report.dropped), ("without a reply", report.problems)):
        if counts:
            said = ", ".join(f"{reason} {count:,}" for reason, count in counts.items())
            out.print(f"{title}: {said}", markup=False)
    if report.stopped == "cost_bound":
        err.print("[yellow]Budget reached[/yellow]: raise max_cost and rerun to continue.")
    elif report.stopped == "nothing_new":
        err.print("[yellow]The model produces nothing new[/yellow]: use other seed rows or a new seed.")
