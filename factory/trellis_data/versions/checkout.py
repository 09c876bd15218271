"""A version as plain Parquet files, for whatever reads those."""

from pathlib import Path

from trellis_data.atomic_files import publishing
from trellis_data.pipeline.shards import ParquetAppender
from trellis_data.versions.records import StoreProblem, Version
from trellis_data.versions.store import Store
from trellis_data.versions.version_rows import stream_rows

#: Rows of a file: enough to be worth one, few enough to be shared out to processes.
_FILE_ROWS = 131_072


def check_out(store: Store, version: Version, folder: Path) -> dict[str, list[Path]]:
    """Write ``folder/<split>/part-*.parquet``, all or nothing; the files by split."""
    if folder.exists():
        raise StoreProblem("folder_taken", f"{folder} is there already; choose a new folder.")
    tree = store.tree(version.commit.tree)
    names: dict[str, list[str]] = {}
    with publishing(folder) as unfinished:
        for split in tree.splits:
            (unfinished / split).mkdir()
            names[split] = _write(store, version, split, unfinished)
    return {split: [folder / name for name in files] for split, files in names.items()}


def _write(store: Store, version: Version, split: str, folder: Path) -> list[str]:
    files: list[ParquetAppender] = []

    def begin() -> ParquetAppender:
        files.append(ParquetAppender(folder / split / f"part-{len(files):06d}.parquet"))
        return files[-1]

    file = begin()
    file.write(store.tree(version.commit.tree).arrow_schema.empty_table())
    for table in stream_rows(store, version, split):
        if file.rows + table.num_rows > _FILE_ROWS and file.rows:
            file.close()
            file = begin()
        file.write(table)
    file.close()
    return [str(each.path.relative_to(folder)) for each in files]
