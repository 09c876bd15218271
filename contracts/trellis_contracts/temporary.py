"""A folder for the temporary files of one run, which goes with the run, whatever that dies of.

Programs make files below ``TMPDIR`` and remove them at their end; one that is killed leaves them. Here they
lie in a folder that its owner holds by a lock, and that the next run removes once the lock is free.
"""

import fcntl
import getpass
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

_PREFIX = "trellis-run-"
_LOCK_FILE = "lock"
#: A folder without a lock may be one that is just being made.
_MAKING_S = 60.0
#: What PyTorch compiles is for all runs: its default place would be a new one with each.
_COMPILED_VARIABLE = "TORCHINDUCTOR_CACHE_DIR"


@contextmanager
def own_temporary_folder() -> Iterator[Path]:
    """Have this process and its children put temporary files into a folder that is removed afterwards."""
    remove_abandoned()
    os.environ.update(keep_compiled(os.environ))
    before = os.environ.get("TMPDIR")
    folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
    with (folder / _LOCK_FILE).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        # Once it says so, a free lock means that its holder is dead.
        print(os.getpid(), file=lock, flush=True)
        _put_into(str(folder))
        try:
            yield folder
        finally:
            _put_into(before)
            shutil.rmtree(folder, ignore_errors=True)


def keep_compiled(environment: Mapping[str, str]) -> dict[str, str]:
    """Return an environment that keeps PyTorch's compile cache in place when TMPDIR changes."""
    return {_COMPILED_VARIABLE: f"{tempfile.gettempdir()}/torchinductor_{_user()}", **environment}


def remove_abandoned() -> None:
    """Remove the folders of runs that are dead."""
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        try:
            if folder.stat().st_uid == os.getuid() and _is_abandoned(folder):
                shutil.rmtree(folder, ignore_errors=True)
        except OSError:  # somebody else has removed it, or it is none of ours
            continue


def _is_abandoned(folder: Path) -> bool:
    try:
        with (folder / _LOCK_FILE).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return bool(lock.read()) or _is_old(folder)
    except BlockingIOError:
        return False
    except FileNotFoundError:
        return _is_old(folder)


def _is_old(folder: Path) -> bool:
    """Return whether the folder is old enough not to be one that is just being created."""
    return time.time() - folder.stat().st_mtime > _MAKING_S


def _put_into(folder: str | None) -> None:
    if folder is None:
        os.environ.pop("TMPDIR", None)
    else:
        os.environ["TMPDIR"] = folder
    tempfile.tempdir = None  # chosen again by the variable


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a container's user may have no name
        return str(os.getuid())
