"""A workflow of several files: what a package may hold, and what its ``requirements.txt`` may say."""

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from trellis_contracts.hashing import hash_file

from trellis_recipes.workflows.source import NoWorkflow, find_function

#: The file with the workflow, and the packages from the index that it needs.
ENTRY_FILE, REQUIREMENTS_FILE = "workflow.py", "requirements.txt"
MIB = 1024**2
#: Of all files together, unpacked.
MAX_BYTES = 256 * MIB
MAX_FILES = 2000
MAX_REQUIREMENTS = 200
_MAX_CODE_BYTES = 256 * 1024
#: What lies beside code and is no part of it.
IGNORED_FOLDERS = frozenset({"__pycache__", ".git", ".venv", ".mypy_cache", ".pytest_cache", ".ruff_cache"})
#: ``name[extra]>=1,<2; python_version < "3.12"``: no options, addresses, paths or variables, for nothing is
#: built here. Markers know no ``-``, ``$`` and ``\\``: pip reads options and variables wherever they stand.
_REQUIREMENT = re.compile(
    r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
    r"(?:\s*\[[A-Za-z0-9._,\s-]*\])?"
    r"\s*(?:\(?(?:(?:===|==|!=|~=|<=|>=|<|>)\s*[A-Za-z0-9.*+!_-]+\s*,?\s*)+\)?)?"
    r"\s*(?:;[\w\s.,<>=!~()\"'+*]*)?"
)


class BadPackage(ValueError):
    """The files are no package of a workflow; ``faults`` say why, each in a sentence."""

    def __init__(self, *faults: str) -> None:
        super().__init__(" ".join(faults))
        self.faults = faults


@dataclass(frozen=True)
class WorkflowPackage:
    """What a folder holds."""

    function: str
    #: Of the file with the workflow.
    code: str
    #: Lines of ``requirements.txt`` without comments, in order.
    requirements: list[str]
    #: Paths relative to the folder, with their sizes.
    files: dict[str, int]
    #: Of paths and contents.
    sha256: str

    @property
    def size_bytes(self) -> int:
        """Of all files."""
        return sum(self.files.values())


def read_package(folder: Path, function: str | None = None) -> WorkflowPackage:
    """Look at a folder; ``BadPackage`` with everything that is wrong. Nothing of it is run."""
    files = {path.relative_to(folder).as_posix(): path.stat().st_size for path in list_files(folder)}
    faults: list[str] = []
    code, found = "", ""
    if ENTRY_FILE not in files:
        faults.append(f"The package has no {ENTRY_FILE} at the top level.")
    else:
        try:
            code = _read_text(folder / ENTRY_FILE, _MAX_CODE_BYTES)
            found = find_function(code, function)
        except NoWorkflow as error:
            faults += error.faults
        except BadPackage as error:
            faults += error.faults
    requirements: list[str] = []
    if REQUIREMENTS_FILE in files:
        try:
            requirements = read_requirements(_read_text(folder / REQUIREMENTS_FILE, MIB))
        except BadPackage as error:
            faults += error.faults
    if faults:
        raise BadPackage(*faults)
    return WorkflowPackage(found, code, requirements, files, hash_folder(folder))


def list_files(folder: Path) -> list[Path]:
    """List a package's files in order, without caches; ``BadPackage`` for links or exceeded limits."""
    found: list[Path] = []
    total = 0
    for path in _walk(folder):
        name = path.relative_to(folder).as_posix()
        if path.is_symlink() or not path.is_file():
            raise BadPackage(f"'{name[:200]}' is a link or no plain file; a package holds plain files only.")
        found.append(path)
        total += path.stat().st_size
        check_size(len(found), total)
    return sorted(found)


def check_size(files: int, total_bytes: int) -> None:
    """Raise ``BadPackage`` if there is more than a package may hold."""
    if files > MAX_FILES:
        raise BadPackage(f"The package has more than {MAX_FILES} files.")
    if total_bytes > MAX_BYTES:
        raise BadPackage(f"The files of the package are larger than {MAX_BYTES // MIB} MiB together.")


def is_ignored(path: PurePosixPath) -> bool:
    """Tell whether a file is not part of a package: caches, version control, virtual environments."""
    return bool(IGNORED_FOLDERS & set(path.parts)) or path.suffix == ".pyc"


def read_requirements(text: str) -> list[str]:
    """Return the requirement lines without comments; ``BadPackage`` for any other kind of line."""
    lines, faults = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        plain = re.sub(r"(^|\s)#.*$", "", line).strip()
        if not plain:
            continue
        if _REQUIREMENT.fullmatch(plain):
            lines.append(plain)
        else:
            faults.append(
                f"{REQUIREMENTS_FILE}, line {number}: '{plain[:100]}' is no requirement of the form"
                " name==version; options, addresses and paths are not taken."
            )
    if len(lines) > MAX_REQUIREMENTS:
        faults.append(f"{REQUIREMENTS_FILE} has more than {MAX_REQUIREMENTS} lines.")
    if faults:
        raise BadPackage(*faults[:20])
    return lines


def hash_folder(folder: Path) -> str:
    """Compute one hash of the paths and contents of a package's files."""
    total = hashlib.sha256()
    for path in list_files(folder):
        total.update(f"{path.relative_to(folder).as_posix()}\0{hash_file(path)}\n".encode())
    return total.hexdigest()


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if is_ignored(PurePosixPath(path.name)):
            continue
        if path.is_dir() and not path.is_symlink():
            yield from _walk(path)
        else:
            yield path


def _read_text(path: Path, limit: int) -> str:
    if path.stat().st_size > limit:
        raise BadPackage(f"{path.name} is larger than {limit // 1024} KiB.")
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise BadPackage(f"{path.name} is no UTF-8 text.") from None
