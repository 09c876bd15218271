"""Where queries come from: a file of this machine, or a dataset of the hub."""

import csv
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trellis_train.agents.linksearch.rows import BadQuery, parse_handles, query_row, read_queries

TRAIN, EVAL = "train", "eval"
#: What a split may be called, by ours.
_NAMES = {TRAIN: ("train",), EVAL: ("eval", "validation", "valid", "dev", "test")}
_ENDINGS = (".jsonl", ".json", ".csv", ".parquet")


def read_rows(source: str, split: str, limit: int | None) -> list[dict[str, Any]]:
    """The first ``limit`` rows of a split, as verl reads them.

    ``source`` is a file, a folder with a file for each split, or a dataset's id on the hub (``owner/name``).
    Raises ``BadQuery`` with a sentence.
    """
    path = _find_file(source, split)
    rows: list[dict[str, Any]] = []
    for number, query in enumerate(_read(path)):
        if limit is not None and len(rows) >= limit:
            break
        row = query_row({"split": split, **query}, number)
        row["extra_info"]["split"] = split
        rows.append(row)
    if not rows:
        raise BadQuery(f"{path.name} of {source} holds no queries")
    return rows


def gold_of(row: dict[str, Any]) -> list[str]:
    """The handles that a row asks for."""
    return parse_handles(row["reward_model"]["ground_truth"])


def _find_file(source: str, split: str) -> Path:
    path = Path(source)
    if path.is_file():
        return path
    if path.is_dir():
        return _choose(sorted(each for each in path.rglob("*") if each.is_file()), split, source)
    if source.count("/") == 1 and not source.startswith((".", "/", "~")):
        return _choose(_fetch(source), split, source)
    raise BadQuery(f"there is no file or folder {source}, and it is no dataset's id (owner/name)")


def _fetch(dataset: str) -> list[Path]:
    """The files of rows of a dataset on the hub; the hub's own variables say where and with which token."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        folder = snapshot_download(
            dataset,
            repo_type="dataset",
            allow_patterns=[f"*{ending}" for ending in _ENDINGS],
            token=os.environ.get("HF_TOKEN") or None,
        )
    except (HfHubHTTPError, LocalEntryNotFoundError, OSError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise BadQuery(f"the dataset {dataset} cannot be fetched from the hub: {reason}") from error
    return sorted(each for each in Path(folder).rglob("*") if each.is_file())


def _choose(files: list[Path], split: str, source: str) -> Path:
    """The file of that split; the only one where there is but one."""
    files = [each for each in files if each.suffix in _ENDINGS]
    for name in _NAMES[split]:
        for each in files:
            if name in each.stem.lower().replace("-", "_").split("_"):
                return each
    if len(files) == 1:
        return files[0]
    raise BadQuery(f"{source} has no file for the split {split} among {[each.name for each in files]}")


def _read(path: Path) -> Iterator[dict[str, Any]]:
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            yield from pq.read_table(path).to_pylist()
        elif path.suffix == ".csv":
            with path.open(encoding="utf-8", newline="") as file:
                yield from csv.DictReader(file)
        elif path.suffix == ".json":
            yield from json.loads(path.read_text(encoding="utf-8"))
        else:
            yield from read_queries(path)
    except (OSError, ValueError, TypeError) as error:
        if isinstance(error, BadQuery):
            raise
        raise BadQuery(f"{path.name} cannot be read: {error}") from error
