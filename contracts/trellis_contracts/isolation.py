"""What of a machine's files a process may see, and the command that starts it with no more than that.

The rules are a file, written by whoever starts the process; ``trellis_contracts.isolated`` applies them.
"""

import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from trellis_contracts.attempt import KEY_FILES, TOKEN_FILE

Mode = Literal["auto", "required", "off"]

#: Tells the isolated process what became of it: ``on``, ``off``, or why it could not be.
STATE_VARIABLE = "TRELLIS_ISOLATION"
ON, OFF = "on", "off"
#: The exit code of a process that had to be isolated and could not be, and what it says before the reason.
EXIT_NOT_ISOLATED = 76
NOT_ISOLATED = "not isolated: "
#: In the data root: folders with everything of a kind, of which a process only sees what it was given.
_CONTENT_FOLDERS = frozenset({"benchmarks", "datasets", "environments", "models", "versions"})
_WHOLE_FOLDERS = _CONTENT_FOLDERS | {
    "data-tasks", "evaluations", "jobs", "ray", "reports", "run", "transfers", "uploads", "workflows",
}  # fmt: skip
#: ... and those in whose folders runs write.
_RUN_WRITTEN = (["jobs"], ["evaluations"], ["ray", "head"], ["run"])
#: What only one attempt may read, which sees it as a part of its folder.
_KEY_FILES = frozenset({TOKEN_FILE, *KEY_FILES})


@dataclass(frozen=True)
class Rules:
    """What a process sees: of the data root only named paths, elsewhere all but what is hidden."""

    #: ``required``: not started where it cannot be isolated; ``off``: only its environment is restricted.
    mode: Mode
    data_root: str
    #: Below the data root: folders that it may write to (made where they are missing), and what it may read.
    writable: list[str] = field(default_factory=list)
    read_only: list[str] = field(default_factory=list)
    #: Files in writable folders that it may only read: the rules themselves, and what else started it.
    locked: list[str] = field(default_factory=list)
    #: Elsewhere: files and folders that are empty for it.
    hidden: list[str] = field(default_factory=list)
    #: Stands in place of the folder for temporary files (``TMPDIR``), unless that is the machine's own.
    temporary: str | None = None
    #: Variables with secrets that it needs all the same.
    kept_variables: list[str] = field(default_factory=list)

    def write(self, path: Path) -> None:
        """Write them where the command finds them."""
        path.write_text(json.dumps(asdict(self), indent=1))


def read_rules(path: str) -> Rules:
    """Read the rules from a file."""
    with open(path) as file:
        return Rules(**json.load(file))


def isolated_command(
    python: str, rules: Path, command: Sequence[str], *, beside: int | None = None
) -> list[str]:
    """Return the command that starts another command under isolation rules.

    ``beside``: a process under the same rules on this machine, whose view of the files is shared.
    """
    joining = [] if beside is None else [f"--beside={beside}"]
    # -P: nothing is imported from the folder that it happens to be started in.
    return [python, "-P", "-m", "trellis_contracts.isolated", *joining, str(rules), *command]


def is_showable(path: str, root: str) -> bool:
    """Return whether a real path below the data root may be shown to a process at all, whatever names it.

    Never: the data root's own files (the admin token, the database), folders of everything of a kind, and
    the keys of attempts.
    """
    parts = _split(path, root)
    if len(parts) < 2:
        return bool(parts) and parts[0] not in _WHOLE_FOLDERS and os.path.isdir(path)
    return not (parts[0] == "jobs" and parts[-1] in _KEY_FILES)


def is_run_written(path: str, root: str) -> bool:
    """Return whether a path below the data root is where runs write, so that runs control its links."""
    parts = _split(path, root)
    return any(parts[: len(each)] == each and len(parts) > len(each) for each in _RUN_WRITTEN)


def is_link_target(path: str, root: str) -> bool:
    """Return whether a link written by the platform may lead to a path: outside the data root, or content."""
    if path != root and not path.startswith(f"{root}{os.sep}"):
        return True
    parts = _split(path, root)
    if len(parts) < 2:
        return False
    return parts[0] in _CONTENT_FOLDERS or (parts[0] == "jobs" and parts[2:3] == ["checkpoints"])


def _split(path: str, root: str) -> list[str]:
    return [part for part in path[len(root) :].split(os.sep) if part]
