"""`trellis jobs tensorboard`: event files of a platform's jobs, as TensorBoard reads them."""

import json
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from trellis_cli.errors import ExitCode
from trellis_cli.job_event_files import JobEventFiles
from trellis_testing.commands import trellis
from trellis_tools.bench.api import Reporter, metric_events
from trellis_tools.bench.light_platform import LightPlatform

KEYS = ["train/loss", "perf/throughput"]


@pytest.fixture
def reporter(platform: LightPlatform) -> Reporter:
    """A run that reports metrics."""
    return Reporter(platform)


def read(folder: Path) -> dict[str, list[tuple[int, float]]]:
    """What TensorBoard draws of a folder."""
    files = EventAccumulator(str(folder), size_guidance={"scalars": 0})
    files.Reload()
    return {key: [(each.step, each.value) for each in files.Scalars(key)] for key in files.Tags()["scalars"]}


def as_drawn(events: list[dict[str, Any]], key: str) -> list[tuple[int, Any]]:
    return [(each["step"], pytest.approx(each["values"][key])) for each in events if key in each["values"]]


def test_all_steps_of_a_job_are_written_without_values_that_are_no_numbers(
    platform: LightPlatform, reporter: Reporter, tmp_path: Path
) -> None:
    events = metric_events(1, 70, KEYS)
    broken = {**metric_events(71, 1, KEYS)[0], "values": {"train/loss": "NaN", "perf/throughput": 2.0}}
    reporter.send(reporter.pack([*events, broken]))
    command = ["jobs", "tensorboard", reporter.job, "-o", str(tmp_path / "runs")]

    done = trellis(platform, *command, "--json")
    again = trellis(platform, *command)

    folder = tmp_path / "runs" / reporter.job
    assert json.loads(done.stdout) == [{"job": reporter.job, "folder": str(folder), "steps": 71}]
    drawn = read(folder)
    assert drawn["train/loss"] == as_drawn(events, "train/loss")
    assert drawn["perf/throughput"] == [*as_drawn(events, "perf/throughput"), (71, 2.0)]
    assert again.returncode == ExitCode.USAGE
    assert "has event files already" in again.stderr


def test_a_job_that_goes_on_is_written_up_to_its_newest_step_each_step_once(
    platform: LightPlatform, reporter: Reporter, tmp_path: Path
) -> None:
    events = metric_events(1, 6, KEYS)
    reporter.send(reporter.pack(events[:4]))
    files = JobEventFiles(platform.client, reporter.job, tmp_path)

    files.update(is_last=False)
    steps_of_a_running_job = files.steps
    reporter.send(reporter.pack(events[4:]))
    files.update(is_last=False)
    files.update(is_last=True)
    files.close()

    assert steps_of_a_running_job == 3
    assert (files.steps, files.is_complete) == (6, True)
    assert read(tmp_path / reporter.job)["train/loss"] == as_drawn(events, "train/loss")
