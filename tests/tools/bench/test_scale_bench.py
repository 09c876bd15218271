"""The benchmarks of large platforms, on a small one: they fill the real store and read it through the API."""

from collections.abc import Iterator

import pytest
from trellis_tools.bench import scale
from trellis_tools.bench.light_platform import LightPlatform, light_platform

#: A database, an API and thousands of rows: half a minute.
pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def platform() -> Iterator[LightPlatform]:
    with light_platform() as running:
        yield running


def test_charts_are_read_from_as_many_points_as_were_asked_for(
    platform: LightPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "STEPS", 100)

    (result,) = scale.measure_points(platform, 10_000)

    runs = platform.client.get("/jobs", limit=50)["items"]
    keys = [platform.client.get(f"/jobs/{run['id']}/metrics", keys="actor/metric_0") for run in runs]
    assert result.details["runs"] == 3
    assert sorted(each["series"][0]["total_points"] for each in keys) == [50, 100, 100]
    assert result.details["median_ms"] <= result.ours


def test_pages_are_read_from_as_many_jobs_as_were_asked_for(
    platform: LightPlatform, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scale, "_PAGES", 12)
    monkeypatch.setattr(scale, "_JOBS_PER_WRITE", 50)

    (result,) = scale.measure_job_list(platform, 120)

    assert len(list(platform.client.pages("/jobs", text="run ", limit=200))) == 120
    assert len(list(platform.client.pages("/jobs", tag="tag-3", limit=200))) == 6
    assert result.details["jobs"] == 120
    assert {name for name in result.details if name.endswith("slowest ms")} >= {"next page, slowest ms"}


def test_every_viewer_sees_every_event(platform: LightPlatform, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scale, "_REPORTS", 3)

    (result,) = scale.measure_viewers(platform, 4)

    assert result.details["events, all viewers"] == 12
    assert result.details["before, MB"] > 50
