"""Names of versions: branches move from commit to commit, tags stay; who moves one knows where it is."""

import contextlib
import fcntl
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from trellis_data.atomic_files import UNFINISHED, sync, write_atomically
from trellis_data.versions.records import StoreProblem

RefKind = Literal["branches", "tags"]
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


class Refs:
    """Branches and tags of a store."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._folder = root / "refs"

    def prepare(self) -> None:
        """Make the folders."""
        for kind in ("branches", "tags"):
            (self._folder / kind).mkdir(parents=True, exist_ok=True)

    def get(self, kind: RefKind, name: str) -> str | None:
        """Return the commit that a name refers to, or None."""
        try:
            return self._path(kind, name).read_text().strip()
        except FileNotFoundError:
            return None

    def all(self, kind: RefKind) -> dict[str, str]:
        """List all names of a kind with their commits."""
        found = sorted(each.name for each in (self._folder / kind).iterdir() if _is_name(each.name))
        return {name: commit for name in found if (commit := self.get(kind, name))}

    def move(self, kind: RefKind, name: str, *, expected: str | None, to: str | None) -> None:
        """Let a name stand for another commit (None: for none), if it stands for ``expected`` now.

        Raises ``StoreProblem`` "moved_meanwhile" where somebody else was faster, and "name_taken" for a new
        branch that is called like a tag, or the other way round: only one of them could be asked for.
        """
        path = self._path(kind, name)
        with locked(self._root / "refs.lock"):
            found = self.get(kind, name)
            if found != expected:
                raise StoreProblem(
                    "moved_meanwhile",
                    f"'{name}' is at {_short(found)}, no longer at {_short(expected)}; look and try again.",
                )
            if found is None and to is not None:
                self.check_free(kind, name)
            if to is None:
                path.unlink(missing_ok=True)
                sync(path.parent)
            else:
                write_atomically(path, to + "\n")

    def check_free(self, kind: RefKind, name: str) -> None:
        """Raise ``StoreProblem`` where the other kind has a name."""
        other: RefKind = "tags" if kind == "branches" else "branches"
        if self.get(other, name):
            what = "tag" if other == "tags" else "branch"
            raise StoreProblem("name_taken", f"'{name}' is a {what}; remove it first or choose another name.")

    def sweep(self) -> None:
        """Remove what killed writers left; whoever moves a name meanwhile waits."""
        with locked(self._root / "refs.lock"):
            for path in self._folder.glob(f"*/*{UNFINISHED}*"):
                path.unlink()

    def _path(self, kind: RefKind, name: str) -> Path:
        check_name(name)
        return self._folder / kind / name


def check_name(name: str) -> None:
    """Raise ``StoreProblem`` where this cannot name a branch, a tag or a split."""
    if not _is_name(name):
        raise StoreProblem("name_unfit", f"'{name[:100]}' is no name: letters, digits, '.', '_' and '-' are.")


def _is_name(name: str) -> bool:
    """Return whether it is a valid name; files still being written have a marker that no name may contain."""
    return _NAME.fullmatch(name) is not None and UNFINISHED not in name


@contextlib.contextmanager
def locked(path: Path, *, shared: bool = False, wait_s: float = 60.0) -> Iterator[None]:
    """Hold a lock file, alone or with others of the same kind; it is free when its process is gone."""
    with path.open("a") as handle:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        ends = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(handle, kind | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= ends:
                    raise StoreProblem(
                        "store_busy",
                        f"{path.parent} is in use: a version is being written, or it is tidied.",
                    ) from None
                time.sleep(0.05)
        yield


def _short(commit: str | None) -> str:
    return commit[:12] if commit else "nothing"
