"""A query over the vectors of 1,200 tools."""

import json
import subprocess

from trellis_cli.errors import Problem
from trellis_cli.services.platform import python_command

from trellis_tools.bench.result import Result

SEARCH_LIMIT_MS = 10.0
_PATIENCE_S = 120.0


def measure_tool_search() -> Result:
    """Measure the milliseconds of the median query; nothing of the engine is imported here."""
    command = python_command("-m", "trellis_train.agents.tooluse.retrieval.speed")
    done = subprocess.run(  # noqa: S603
        command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False
    )
    if done.returncode:
        raise Problem(f"the search failed with exit code {done.returncode}:\n{done.stderr[-3000:]}")
    measured = json.loads(done.stdout.splitlines()[-1])
    return Result("tool_search", measured.pop("median_ms"), SEARCH_LIMIT_MS, "ms", details=measured)
