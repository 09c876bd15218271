"""Start a command under the rules of a file: ``python -m trellis_contracts.isolated <rules> <command> ...``.

It becomes that command. With no arguments it tries whether processes can be isolated here, prints
what is in the way, and leaves with 1 where something is.
"""

import os
import sys
from typing import NoReturn

from trellis_contracts.isolation import (
    EXIT_NOT_ISOLATED,
    NOT_ISOLATED,
    OFF,
    ON,
    STATE_VARIABLE,
    Rules,
    read_rules,
)
from trellis_contracts.namespaces import NotIsolated, enter, find_problem, join
from trellis_contracts.private_settings import without_secrets

_BESIDE = "--beside="


def main(arguments: list[str]) -> int:
    """Become the command; an exit code where that is not to be."""
    if not arguments:
        problem = find_problem()
        print(problem or "", end="", flush=True)
        return int(problem is not None)
    beside = None
    if arguments[0].startswith(_BESIDE):
        beside = int(arguments[0].removeprefix(_BESIDE))
        arguments = arguments[1:]
    path, *command = arguments
    rules = read_rules(path)
    state = _isolate(rules, beside, os.path.dirname(path))
    if rules.mode == "required" and state != ON:
        print(f"{NOT_ISOLATED}{state}", file=sys.stderr, flush=True)
        return EXIT_NOT_ISOLATED
    _become(command, {**without_secrets(os.environ, rules.kept_variables), STATE_VARIABLE: state})


def _isolate(rules: Rules, beside: int | None, folder: str) -> str:
    """Isolate this process if possible; return "on", "off", or the reason why it was not possible."""
    if rules.mode == "off":
        return OFF
    # Half isolated is neither: a child finds out whether it can be done, with these rules.
    problem = find_problem(rules)
    if problem is not None:
        return problem
    if beside is None or not _is_joined(beside, folder):
        enter(rules)
    return ON


def _is_joined(pid: int, folder: str) -> bool:
    """Join another process's view of the files, if it was started for ``folder``; return whether it worked.

    On another machine the number is somebody else's, and a container may forbid setns.
    """
    try:
        with open(f"/proc/{pid}/cmdline") as file:
            if f"{folder}{os.sep}" not in file.read():
                return False
        join(pid)
    except (OSError, NotIsolated):
        return False
    return True


def _become(command: list[str], environment: dict[str, str]) -> NoReturn:
    os.execvpe(command[0], command, environment)  # noqa: S606 - no shell is meant


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except NotIsolated as error:
        print(f"{NOT_ISOLATED}{error}", file=sys.stderr, flush=True)
        sys.exit(EXIT_NOT_ISOLATED)
