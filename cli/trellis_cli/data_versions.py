"""`trellis data commit | log | diff | tag | branch | rollback | checkout | verify | gc`: local versions."""

import getpass
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trellis_cli.data_context import Tokenizer
from trellis_cli.data_runs import summarise_rows
from trellis_cli.output import Json, age, out, print_json, print_table, size
from trellis_cli.rows_input import Columns, Format, find_layout, find_rows, mapped_errors

if TYPE_CHECKING:
    from trellis_data.versions.records import Version
    from trellis_data.versions.store import Store

StoreFolder = Annotated[Path, typer.Option("--store", envvar="TRELLIS_STORE", help="Version store folder.")]
Revision = Annotated[str, typer.Argument(help="Branch, tag, or at least 8 digits of a version ID.")]
Branch = Annotated[str, typer.Option(help="Branch to commit to.")]
Author = Annotated[str | None, typer.Option(help="Author; default: the current user.")]


def commit(
    path: Annotated[list[Path], typer.Argument(help="A run folder, Parquet files, or a folder with them.")],
    store: StoreFolder,
    message: Annotated[str, typer.Option("--message", "-m")],
    branch: Branch = "main",
    author: Author = None,
    data_format: Format = None,
    column: Columns = None,
    tokenizer: Tokenizer = None,
    made_from: Annotated[
        list[str] | None, typer.Option("--from", help="Version the rows were derived from; repeatable.")
    ] = None,
    statistics: Annotated[bool, typer.Option(help="Compute statistics of the version.")] = True,
    as_json: Json = False,
) -> None:
    """Commit rows as a new version; unchanged rows are not stored again."""
    rows = find_rows(path)
    counted = summarise_rows(rows, tokenizer, data_format, column) if statistics else None
    with mapped_errors():
        from trellis_data.versions.records import Provenance
        from trellis_data.versions.store import Entry, Store

        opened = Store.create(store)
        provenance = Provenance(inputs=[opened.version(each).id for each in made_from or []])
        if rows.report:
            provenance.pipeline = (path[0] / "pipeline.yaml").read_text()
            provenance.pipeline_hash = rows.report.pipeline_hash
        entry = Entry(
            message,
            author or getpass.getuser(),
            find_layout(rows, name=data_format, columns=column),
            provenance,
            counted.model_dump(mode="json") if counted else None,
        )
        made = opened.record(rows.splits, entry, branch=branch)
    if as_json:
        print_json(_plain(made))
    else:
        out.print(f"{made.id[:12]}  {_rows(made)}", markup=False)


def log(revision: Revision = "main", *, store: StoreFolder, as_json: Json = False) -> None:
    """Show a version and its history, newest first."""
    with mapped_errors():
        opened = _open(store)
        history = list(opened.history(revision))
        names: dict[str, list[str]] = {}
        for kind in ("branches", "tags"):
            for name, commit_id in opened.refs.all(kind).items():
                names.setdefault(commit_id, []).append(name)
    if as_json:
        print_json([{**_plain(each), "names": names.get(each.id, [])} for each in history])
        return
    print_table(
        ("version", "age", "author", "rows", "names", "message"),
        [
            (
                each.id[:12],
                age(each.commit.time),
                each.commit.author,
                _rows(each),
                ", ".join(names.get(each.id, [])),
                each.commit.message,
            )
            for each in history
        ],
    )


def diff(
    before: Revision,
    after: Revision = "main",
    *,
    store: StoreFolder,
    key: Annotated[
        str | None, typer.Option(help="Column that identifies rows, to detect changed ones.")
    ] = None,
    rows: Annotated[int, typer.Option(min=0, max=1000, help="Number of rows of each kind to show.")] = 5,
    as_json: Json = False,
) -> None:
    """Show differences between two versions."""
    with mapped_errors():
        from trellis_data.versions.differences import Kind, compare, read_difference

        opened = _open(store)
        found = compare(opened, opened.version(before), opened.version(after), key)
        kinds: tuple[Kind, ...] = ("added", "removed", "changed")
        pages = {
            split: {kind: read_difference(opened, found, split, kind, limit=rows) for kind in kinds}
            for split in found.splits
        }
    if as_json:
        print_json({**found.model_dump(mode="json"), "rows": json.loads(json.dumps(pages, default=str))})
        return
    print_table(
        ("split", "added", "removed", "changed", "same"),
        [(split, each.added, each.removed, each.changed, each.same) for split, each in found.splits.items()],
    )
    for column in found.columns:
        out.print(f"column {column.name}: {column.before or 'none'} → {column.after or 'none'}", markup=False)
    for split, page in pages.items():
        for old, new in (pair for kind in kinds for pair in page[kind]):
            for sign, row in (("-", old), ("+", new)):
                if row is not None:
                    line = f"{sign} {split}: {json.dumps(row, ensure_ascii=False, default=str)[:300]}"
                    out.print(line, markup=False, highlight=False, soft_wrap=True)


def tag(name: str, revision: Revision = "main", *, store: StoreFolder) -> None:
    """Tag a version."""
    with mapped_errors():
        _open(store).tag(name, revision)


def branch(name: str, revision: Revision = "main", *, store: StoreFolder) -> None:
    """Create a branch at a version."""
    with mapped_errors():
        _open(store).branch(name, revision)


def rollback(
    revision: Revision,
    *,
    store: StoreFolder,
    branch: Branch = "main",
    author: Author = None,
    as_json: Json = False,
) -> None:
    """Roll back to an earlier version by adding it as a new one; the history is kept."""
    with mapped_errors():
        made = _open(store).roll_back(revision, branch=branch, author=author or getpass.getuser())
    if as_json:
        print_json(_plain(made))
    else:
        out.print(f"{made.id[:12]}  {_rows(made)}", markup=False)


def checkout(
    folder: Annotated[Path, typer.Argument(help="New folder for the Parquet files.")],
    revision: Revision = "main",
    *,
    store: StoreFolder,
) -> None:
    """Write a version as Parquet files, one folder per split."""
    with mapped_errors():
        from trellis_data.versions.checkout import check_out

        opened = _open(store)
        files = check_out(opened, opened.version(revision), folder)
    for split, paths in files.items():
        out.print(f"{folder / split}: {len(paths)} files", markup=False)


def verify(store: StoreFolder) -> None:
    """Verify the integrity of all versions."""
    from trellis_cli.errors import Problem

    with mapped_errors():
        from trellis_data.versions.upkeep import verify as verify_store

        problems = verify_store(_open(store))
    if problems:
        raise Problem("\n".join(problems))
    out.print("all versions are intact")


def gc(store: StoreFolder) -> None:
    """Delete versions that no branch or tag reaches."""
    with mapped_errors():
        from trellis_data.versions.upkeep import collect_garbage

        gone = collect_garbage(_open(store))
    out.print(f"{gone.files} files removed, {size(gone.size_bytes)}")


def register(app: typer.Typer) -> None:
    """Add the commands to `trellis data`."""
    for command in (commit, log, diff, tag, branch, rollback, checkout, verify, gc):
        app.command()(command)


def _open(folder: Path) -> "Store":
    from trellis_data.versions.store import Store

    return Store(folder)


def _plain(version: "Version") -> dict[str, Any]:
    return {"id": version.id, **version.commit.model_dump(mode="json")}


def _rows(version: "Version") -> str:
    return ", ".join(f"{split} {rows:,}" for split, rows in version.commit.rows.items())
