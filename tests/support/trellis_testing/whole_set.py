"""Tests marked ``whole_set`` take minutes each; they run where they are asked for, not at every change."""

import os
from collections.abc import Iterable

import pytest
from trellis_cli.proof import EVERYTHING, SCOPE_VARIABLE
from trellis_cli.verify import POSTPONED


def postpone_whole_set(items: Iterable[pytest.Item]) -> None:
    """Skip them, with a word, unless all are asked for."""
    if os.environ.get(SCOPE_VARIABLE) == EVERYTHING:
        return
    # `./init.sh proof all` and `./init.sh verify` set it.
    postpone = pytest.mark.skip(reason=f"{POSTPONED} runs with {SCOPE_VARIABLE}={EVERYTHING}")
    for item in items:
        if item.get_closest_marker("whole_set"):
            item.add_marker(postpone)
