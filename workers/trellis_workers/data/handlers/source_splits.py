"""Which split the files of a source belong to, by what they are called."""

import re
from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from trellis_data.reading.sources import Source, SourceFile

#: Words in names of files and folders, and the split that they mean.
_WORDS = {
    "train": "train",
    "training": "train",
    "test": "test",
    "testing": "test",
    "validation": "validation",
    "valid": "validation",
    "val": "validation",
    "dev": "validation",
    "eval": "eval",
    "evaluation": "eval",
}
_BETWEEN = re.compile(r"[^a-z]+")


class Part(Source):
    """Some of the files of a source."""

    def __init__(self, whole: Source, files: Sequence[SourceFile]) -> None:
        self._whole = whole
        self._files = list(files)
        self.revision = whole.revision

    def describe(self) -> str:
        return self._whole.describe()

    def list_files(self) -> list[SourceFile]:
        return self._files

    def bring(self, file: SourceFile, work: Path) -> Path:
        return self._whole.bring(file, work)


def part_by_split(files: Sequence[SourceFile], default: str) -> dict[str, list[SourceFile]]:
    """Group the files by split: by their names if these tell several splits, else all in the default."""
    named = [(file, _split_of(file.name)) for file in files]
    if len({split for _, split in named if split}) < 2:
        return {default: list(files)} if files else {}
    parted: dict[str, list[SourceFile]] = {}
    for file, split in named:
        parted.setdefault(split or default, []).append(file)
    return parted


def part_by_file(files: Sequence[SourceFile]) -> dict[str, list[SourceFile]]:
    """Make every file a split named after the file, without its suffixes."""
    parted: dict[str, list[SourceFile]] = {}
    for file in files:
        parted.setdefault(PurePosixPath(file.name).name.split(".")[0], []).append(file)
    return parted


def _split_of(name: str) -> str | None:
    """Find a file's split by its own name first, then by its folders, the innermost first."""
    path = PurePosixPath(name.lower())
    for part in (path.name.split(".")[0], *reversed(path.parent.parts)):
        found = {_WORDS[word] for word in _BETWEEN.split(part) if word in _WORDS}
        if len(found) == 1:
            return found.pop()
    return None
