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


@pytest.mark.parametrize(("platform", "mode"), [("cpu", "auto"), ("cuda", "off")])
def test_jobs_on_a_cpu_are_isolated_unless_that_is_turned_off(platform: str, mode: str) -> None:
    settings = Settings(platform=platform, job_isolation=None)

    assert settings.resolved_job_isolation == mode
    assert Settings(platform=platform, job_isolation="required").resolved_job_isolation == "required"


def test_with_gpus_the_doctor_says_that_jobs_are_not_isolated() -> None:
    check = check_isolation(Settings(platform="cuda", job_isolation=None))

    assert check.state == "warning"
    assert "is the default with GPUs: jobs can read" in check.detail
