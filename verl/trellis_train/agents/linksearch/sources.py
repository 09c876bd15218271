"""Where queries come from: files of this machine, or a dataset of the hub."""

import csv
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from trellis_train.agents.linksearch.query_rows import BadQuery, parse_handles, query_row, read_queries

TRAIN, EVAL = "train", "eval"
HUB_PREFIX = "hub:"
#: What a split may be called, by ours.
_NAMES = {TRAIN: ("train",), EVAL: ("eval", "validation", "valid", "dev", "test")}
_ENDINGS = (".jsonl", ".json", ".csv", ".parquet")
#: Of rows that know no splits, one in so many is measured with.
_HELD_OUT = 10
_NAMED_FILES = 20
#: What tells the parts of a file apart: ``train-00000-of-00002``, ``part.3``, ``0001``.
_PART = re.compile(r"[-_.]?(?:\d+-of-)?\d+$")


def read_rows(source: str, split: str, limit: int | None) -> list[dict[str, Any]]:
    """Read the first ``limit`` rows of a split in verl's format.

    ``source`` is a file, a folder with files for each split, or a dataset's id on the hub (``owner/name``, or
    ``hub:owner/name``). Files are told apart by their names or folders (``train-00000-of-00002.parquet``,
    ``data/test/0.parquet``), and all parts of a split are read. Where they name no splits, the rows' own
    column ``split`` tells, else the last tenth is the split ``eval``. Raises ``BadQuery`` with a sentence.
    """
    queries = [query_row({"split": split, **query}, number) for number, query in _queries(source, split)]
    rows = queries if limit is None else queries[:limit]
    if not rows:
        raise BadQuery(f"{source} contains no queries in the {split} split")
    for row in rows:
        row["extra_info"]["split"] = split
    return rows


def gold_of(row: dict[str, Any]) -> list[str]:
    """Return the gold handles of a row."""
    return parse_handles(row["reward_model"]["ground_truth"])


def _queries(source: str, split: str) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the queries of a split with their numbers, in file order."""
    files = _find_files(source)
    train, evaluation = _of_split(files, TRAIN), _of_split(files, EVAL)
    if evaluation:
        yield from enumerate(_read_all(_require(train if split == TRAIN else evaluation, source, split)))
    elif len(train) == len(files) or _are_one_file(list(files)):
        yield from _cut(list(enumerate(_read_all(list(files)))), split)
    else:
        yield from enumerate(_read_all(_require(train if split == TRAIN else [], source, split, files)))


def _require(found: list[Path], source: str, split: str, files: Iterable[Path] = ()) -> list[Path]:
    if not found:
        names = sorted(each.name for each in files)[:_NAMED_FILES]
        raise BadQuery(f"{source} has no file for the split {split}" + (f" among {names}" if names else ""))
    return found


def _cut(rows: list[tuple[int, dict[str, Any]]], split: str) -> list[tuple[int, dict[str, Any]]]:
    """Select the rows of a split when the file names do not tell the splits."""
    if any(row.get("split") for _, row in rows):
        return [each for each in rows if str(each[1].get("split")).lower() in _NAMES[split]]
    for number, row in rows:  # what is wrong with a row is told whichever split it falls into
        query_row(row, number)
    held_out = max(1, len(rows) // _HELD_OUT)
    return rows[-held_out:] if split == EVAL else rows[:-held_out]


def _find_files(source: str) -> dict[Path, tuple[str, ...]]:
    """Find files of rows of one kind, with the words of their file and folder names within the source."""
    path, hub = Path(source), source.removeprefix(HUB_PREFIX)
    if source.startswith(HUB_PREFIX):
        root = _fetch(hub)
    elif path.is_file():
        return {path: ()}
    elif path.is_dir():
        root = path
    elif source.count("/") == 1 and not source.startswith((".", "/", "~")):
        root = _fetch(source)
    else:
        raise BadQuery(f"{source} is neither a file, a folder nor a dataset id (owner/name)")
    found = [each for each in sorted(root.rglob("*")) if each.is_file() and each.suffix in _ENDINGS]
    # The same rows may lie there in several forms; one of them is read.
    suffix = next((ending for ending in _ENDINGS if any(each.suffix == ending for each in found)), None)
    if suffix is None:
        raise BadQuery(f"{source} contains no {', '.join(_ENDINGS)} file")
    return {each: _words(each.relative_to(root)) for each in found if each.suffix == suffix}


def _words(path: Path) -> tuple[str, ...]:
    parts = (*path.parent.parts, path.stem)
    return tuple(word for part in parts for word in re.split(r"[-_.]", part.lower()))


def _of_split(files: dict[Path, tuple[str, ...]], split: str) -> list[Path]:
    """Return all parts of a split, by the first of its names that any file has."""
    for name in _NAMES[split]:
        if found := [path for path, words in files.items() if name in words]:
            return found
    return []


def _are_one_file(files: list[Path]) -> bool:
    """Tell whether the files are one, or the numbered parts of one."""
    return len({(each.parent, _PART.sub("", each.stem)) for each in files}) == 1


def _fetch(dataset: str) -> Path:
    """Download a dataset's row files from the hub, whose environment variables set endpoint and token."""
    from huggingface_hub import constants, snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, HFValidationError, LocalEntryNotFoundError
    from trellis_data.guarded_clients import guard_hub
    from trellis_data.operator import OperatorProblem

    guard_hub(constants.ENDPOINT)
    try:
        return Path(
            snapshot_download(
                dataset,
                repo_type="dataset",
                allow_patterns=[f"*{ending}" for ending in _ENDINGS],
                token=os.environ.get("HF_TOKEN") or None,
            )
        )
    except (
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
        OSError,
        OperatorProblem,
    ) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadQuery(f"the dataset {dataset} could not be downloaded from the Hub: {reason}") from error


def _read_all(paths: list[Path]) -> Iterator[dict[str, Any]]:
    for path in paths:
        yield from _read(path)


def _read(path: Path) -> Iterator[dict[str, Any]]:
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            with pq.ParquetFile(path) as file:
                for batch in file.iter_batches():
                    yield from batch.to_pylist()
        elif path.suffix == ".csv":
            with path.open(encoding="utf-8", newline="") as text:
                yield from csv.DictReader(text)
        elif path.suffix == ".json":
            yield from json.loads(path.read_text(encoding="utf-8"))
        else:
            yield from read_queries(path)
    except (OSError, ValueError, TypeError) as error:
        if isinstance(error, BadQuery):
            raise
        raise BadQuery(f"{path.name} cannot be read: {error}") from error
