"""What the doctor says of the isolation of jobs."""

from pathlib import Path

import pytest
from trellis_api.core.settings import Settings
from trellis_cli.doctor import check_isolation

IMPOSSIBLE = "from trellis_contracts import namespaces\nnamespaces.find_problem = lambda: 'it is forbidden'\n"


@pytest.mark.parametrize(
    ("mode", "state", "detail"),
    [
        ("auto", "warning", "it is forbidden: jobs can read the platform's secrets and other jobs' files"),
        ("required", "failing", "it is forbidden: jobs won't start (TRELLIS_JOB_ISOLATION)"),
    ],
)
def test_a_machine_that_cannot_isolate_jobs_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str, state: str, detail: str
) -> None:
    (tmp_path / "sitecustomize.py").write_text(IMPOSSIBLE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.setenv("TRELLIS_JOB_ISOLATION", mode)

    check = check_isolation(Settings())

    assert (check.state, check.detail) == (state, detail)


def test_isolation_that_was_turned_off_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TRELLIS_JOB_ISOLATION", "off")

    assert check_isolation(Settings()).state == "warning"
