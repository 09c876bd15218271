"""Processes that are ended do not hold up whoever ends them."""

import subprocess
import sys
from typing import Any

import pytest
from trellis_workers.core import processes


class Undying(subprocess.Popen[bytes]):
    """A process whose end never comes, as of one that waits for a disk that is gone."""

    def wait(self, timeout: float | None = None) -> int:
        if timeout is None:
            pytest.fail("waited for without a limit")
        raise subprocess.TimeoutExpired(self.args, timeout)


@pytest.mark.parametrize(
    "end", [processes.end_group, lambda process: processes.end_gently(process, 0.01)], ids=["group", "gently"]
)
def test_a_killed_process_that_does_not_end_is_left_to_the_kernel(
    end: Any, caplog: pytest.LogCaptureFixture
) -> None:
    process = Undying([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)

    end(process)

    assert f"process {process.pid} was killed but does not end" in caplog.text
    assert subprocess.Popen.wait(process, 10) < 0
