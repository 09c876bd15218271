"""What the name of a metric says, which the dashboard reads as well."""

import json
from pathlib import Path

import pytest
from trellis_api.jobs.metrics.direction import is_validation

#: From which the dashboard's tests read.
EXAMPLES = Path(__file__).parents[3] / "frontend/src/jobs/shared/heldOut.examples.json"


@pytest.mark.parametrize(("key", "expected"), json.loads(EXAMPLES.read_text()).items())
def test_held_out_metrics_are_told_by_their_names(key: str, expected: bool) -> None:
    assert is_validation(key) is expected
