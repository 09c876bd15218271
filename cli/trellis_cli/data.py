"""`trellis data`: rows, on the platform and in files (`data_runs`, `data_generation`, `data_versions`)."""

from pathlib import Path
from typing import Annotated

import typer

from trellis_cli import data_generation, data_runs, data_versions
from trellis_cli.client import connect
from trellis_cli.output import Json, age, out, print_json, print_table, size

app = typer.Typer(no_args_is_help=True)
data_runs.register(app)
data_versions.register(app)
app.command()(data_generation.generate)


@app.command()
def upload(
    file: Annotated[Path, typer.Argument(exists=True, dir_okay=False, help="JSONL, JSON, CSV or Parquet.")],
    name: Annotated[str | None, typer.Option(help="Name to show; default the file's.")] = None,
    description: Annotated[str, typer.Option()] = "",
    as_json: Json = False,
) -> None:
    """Upload a file; a row that does not fit is named by its line."""
    found = connect().upload("/datasets", file, {"name": name or file.stem, "description": description})
    if as_json:
        print_json(found)
        return
    out.print(f"{found['id']}  {found['row_count']} rows, {found['format']}: {found['format_reason']}")


@app.command("list")
def list_datasets(as_json: Json = False) -> None:
    """Datasets, newest first."""
    datasets = list(connect().pages("/datasets"))
    if as_json:
        print_json(datasets)
        return
    rows = [
        (
            each["id"],
            each["name"],
            each["format"],
            each["row_count"],
            size(each["size_bytes"]),
            age(each["created_at"]),
        )
        for each in datasets
    ]
    print_table(("id", "name", "format", "rows", "size", "age"), rows)


@app.command()
def rows(
    dataset: str,
    offset: Annotated[int, typer.Option(min=0)] = 0,
    limit: Annotated[int, typer.Option(min=1, max=100)] = 5,
) -> None:
    """Rows of a dataset, one JSON object a line."""
    for row in connect().get(f"/datasets/{dataset}/rows", offset=offset, limit=limit)["rows"]:
        print_json(row)


@app.command()
def delete(dataset: str) -> None:
    """Delete a dataset and its file."""
    connect().delete(f"/datasets/{dataset}")
