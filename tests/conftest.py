"""What all suites share."""

import json
import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from trellis_tools.ci.runner import LEFT_OUT_VARIABLE, REASONS

# Suites run beside each other: how long an example takes says nothing about what it tests.
settings.register_profile("shared-cores", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared-cores")


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Append how many tests the selection left out, by the first mark that says why."""
    path = os.environ.get(LEFT_OUT_VARIABLE)
    if path and items:
        counts = Counter(
            next((mark for mark in REASONS if item.get_closest_marker(mark)), "") for item in items
        )
        with Path(path).open("a") as file:
            file.write(json.dumps(counts) + "\n")
