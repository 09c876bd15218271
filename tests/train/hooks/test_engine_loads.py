"""The load of rollout engines: what a step's timeline and metrics tell of it."""

from types import SimpleNamespace
from typing import Any

import pytest
import ray
from trellis_train.hooks.engine_loads import (
    Sample,
    cut_loads,
    describe_loads,
    end_loads,
    measure_loads,
    take_loads,
)

#: It validates before the step that begins at 100, then runs 4 requests, queues 2 more, and is done at 110.
SAMPLES: list[Sample] = [
    (90.0, 9, 9, 1.0), (95.0, 0, 0, 0.0), (102.0, 4, 0, 0.25), (106.0, 4, 2, 0.5), (110.0, 0, 0, 0.0),
]  # fmt: skip


def test_only_what_belongs_to_the_step_is_told() -> None:
    (cut,) = cut_loads([SAMPLES], 100.0)

    assert cut[0] == (100.0, 0, 0, 0.0)
    assert cut[1:] == SAMPLES[2:]
    assert cut_loads([[]], 100.0) == [[]]


def test_the_timeline_counts_seconds_from_the_beginning_of_the_step() -> None:
    loads = describe_loads([*cut_loads([SAMPLES], 100.0), []], 100.0)

    (load,) = loads
    assert (load.name, load.at_s) == ("engine 0", [0.0, 2.0, 6.0, 10.0])
    assert (load.running, load.waiting, load.kv_use) == ([0, 4, 4, 0], [0, 0, 2, 0], [0.0, 0.25, 0.5, 0.0])


def test_metrics_are_means_over_the_time_in_which_engines_work() -> None:
    found = measure_loads(cut_loads([SAMPLES], 100.0))

    assert found == {
        "rollout_engine/running/mean": 4.0,
        "rollout_engine/waiting/mean": 1.0,
        "rollout_engine/queued_fraction": 0.5,
        "rollout_engine/kv_cache_use/max": 0.5,
    }


def test_the_time_of_an_engine_that_still_works_ends_with_the_cut() -> None:
    (ended,) = end_loads([SAMPLES], 108.0)

    assert ended == [*SAMPLES[:4], (108.0, 4, 2, 0.5)]
    assert end_loads([[], SAMPLES[2:]], 101.0) == [[], []]


@pytest.mark.parametrize("loads", [[], [[]], [[(1.0, 0, 0, 0.0), (5.0, 0, 0, 0.0)]]])
def test_engines_that_did_nothing_have_no_metrics(loads: list[list[Sample]]) -> None:
    assert measure_loads(loads) == {}


def test_all_servers_that_take_samples_are_asked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def server(name: str) -> Any:
        return SimpleNamespace(take_load=SimpleNamespace(remote=lambda: name))

    trainer = SimpleNamespace(
        llm_server_manager=SimpleNamespace(server_handles=[server("a"), object()]),
        standalone_server_manager=SimpleNamespace(server_handles=[server("b")]),
    )
    asked: list[Any] = []

    def get(references: list[Any], timeout: float) -> list[list[Sample]]:
        asked.append((references, timeout))
        return [SAMPLES for _ in references]

    monkeypatch.setattr(ray, "get", get)

    assert take_loads(trainer) == [SAMPLES, SAMPLES]
    assert [references for references, _ in asked] == [["a", "b"]]
    assert take_loads(SimpleNamespace()) == []
