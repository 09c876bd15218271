"""Follows what has parts, a job pipeline or a sweep, to its end in a terminal."""

import time
from collections.abc import Callable, Collection, Iterable
from typing import Any

from trellis_cli.client import ApiClient
from trellis_cli.output import err
from trellis_cli.waiting import read_patiently

#: Seconds between two looks.
POLL_S = 1.0


def follow_parts(
    client: ApiClient,
    path: str,
    *,
    under_way: Collection[str],
    parts: Callable[[dict[str, Any]], Iterable[tuple[Any, str, str]]],
    progress: Callable[[dict[str, Any]], str],
    again: str,
) -> dict[str, Any]:
    """Read ``path`` until its state is not ``under_way``, and tell every change of a part.

    ``parts`` gives key, state and line of each, ``progress`` the line that is written over, ``again`` the
    command that goes on following. Ctrl-C only stops following.
    """
    known: dict[Any, str] = {}
    try:
        with err.status("...") as line:
            while True:
                found = read_patiently(client, path)
                for key, state, told in parts(found):
                    if known.get(key) != state:
                        known[key] = state
                        err.print(told, highlight=False)
                if found["state"] not in under_way:
                    return found
                line.update(progress(found))
                time.sleep(POLL_S)
    except KeyboardInterrupt:
        err.print(f"Still running: {again}", highlight=False)
        raise
