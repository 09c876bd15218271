"""What of a machine's files a process may see, and the command that starts it with no more than that.

The rules are a file, written by whoever starts the process; ``trellis_contracts.isolated`` applies them.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

Mode = Literal["auto", "required", "off"]

#: Tells the isolated process what became of it: ``on``, ``off``, or why it could not be.
STATE_VARIABLE = "TRELLIS_ISOLATION"
ON, OFF = "on", "off"
#: The exit code of a process that had to be isolated and could not be, and what it says before the reason.
EXIT_NOT_ISOLATED = 76
NOT_ISOLATED = "not isolated: "


@dataclass(frozen=True)
class Rules:
    """What a process sees: of the data root only named paths, elsewhere all but what is hidden."""

    #: ``required``: not started where it cannot be isolated; ``off``: only its environment is restricted.
    mode: Mode
    data_root: str
    #: Below the data root: folders that it may write to (made where they are missing), and what it may read.
    writable: list[str] = field(default_factory=list)
    read_only: list[str] = field(default_factory=list)
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
    """The rules of a file."""
    with open(path) as file:
        return Rules(**json.load(file))


def isolated_command(
    python: str, rules: Path, command: Sequence[str], *, beside: int | None = None
) -> list[str]:
    """The command that starts another one under rules.

    ``beside``: a process under the same rules on this machine, whose view of the files is shared.
    """
    joining = [] if beside is None else [f"--beside={beside}"]
    # -P: nothing is imported from the folder that it happens to be started in.
    return [python, "-P", "-m", "trellis_contracts.isolated", *joining, str(rules), *command]


def find_paths(document: Any, root: Path) -> Iterator[str]:
    """All absolute paths below ``root`` that a JSON document names."""
    if isinstance(document, str):
        if document.startswith(f"{root}{os.sep}"):
            yield document
    elif isinstance(document, Mapping):
        for value in document.values():
            yield from find_paths(value, root)
    elif isinstance(document, Iterable):
        for value in document:
            yield from find_paths(value, root)
