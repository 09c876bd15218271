"""A pipeline on a real Ray cluster, as workers carry it out."""

from collections.abc import Iterator
from typing import Any

import pytest
from trellis_testing.ray_cluster import running_ray_head

from .conftest import ROWS, row_of

STEPS = {
    "name": "clean",
    "steps": [{"operator": "normalise_text"}, {"operator": "minhash_duplicates"}, {"operator": "split"}],
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[dict[str, str]]:
    with running_ray_head() as joining:
        yield joining


def rows_of(platform: Any, task: dict[str, Any]) -> list[Any]:
    """All rows that a run has left."""
    assert task["state"] == "succeeded", task["reason"]
    made = platform.get(f"/datasets/{task['made_dataset']}")
    return [
        platform.get(f"/datasets/{made['id']}/rows", split=split, limit=200)["rows"]
        for split in sorted(made["splits"])
    ]


@pytest.mark.slow
def test_the_cluster_of_the_settings_makes_the_rows_that_processes_make(
    platform: Any, cluster: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset = platform.make([*ROWS, *map(row_of, range(200, 300))])
    for name, value in cluster.items():
        monkeypatch.setenv(name, value)
    # Where the settings say so, and not wherever else there may be one.
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    monkeypatch.setattr(platform.settings, "ray_address", cluster["RAY_ADDRESS"])
    tasks = {
        executor: platform.start_run(
            dataset["id"], STEPS, executor=executor, output={"kind": "dataset", "name": executor}
        )
        for executor in ("ray", "processes")
    }
    platform.finish(in_child=True)

    found = {executor: rows_of(platform, platform.task(task)) for executor, task in tasks.items()}
    assert found["ray"] == found["processes"]
    assert sum(map(len, found["ray"])) > 100
