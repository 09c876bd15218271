"""Samples of a rollout engine's load, as vLLM tells its stat loggers of them."""

from importlib.metadata import entry_points

import pytest
from trellis_contracts.events import MAX_LOAD_SAMPLES
from trellis_train.rollout import engine_load
from trellis_train.rollout.engine_load import INTERVAL_S, Load, LoadLogger, LoadSamples
from vllm.v1.metrics.loggers import load_stat_logger_plugin_factories
from vllm.v1.metrics.stats import SchedulerStats


class Clock:
    """Says the seconds that it is told."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_a_busy_engine_is_sampled_at_a_bounded_rate_and_whenever_work_begins_or_ends() -> None:
    clock = Clock()
    samples = LoadSamples(clock)

    for _ in range(10):
        samples.note(0, 4, 1, 0.5)
        clock.now += INTERVAL_S / 4
    samples.note(0, 0, 0, 0.0)
    samples.note(0, 0, 0, 0.0)

    taken = samples.take()
    assert taken[0] == Load(100.0, 4, 1, 0.5)
    assert taken[-1] == Load(clock.now, 0, 0, 0.0)
    assert len(taken) == 4
    assert samples.take() == []


def test_a_long_step_leaves_as_many_samples_as_a_short_one_spread_over_it() -> None:
    clock = Clock()
    samples = LoadSamples(clock)

    for _ in range(20 * MAX_LOAD_SAMPLES):
        samples.note(0, 1, 0, 0.1)
        clock.now += INTERVAL_S

    taken = samples.take()
    assert MAX_LOAD_SAMPLES / 2 <= len(taken) <= MAX_LOAD_SAMPLES
    assert taken[0].at == 100.0
    assert clock.now - taken[-1].at < 0.01 * (clock.now - 100.0)


def test_engines_of_one_server_are_added_up_and_the_fullest_cache_counts() -> None:
    samples = LoadSamples(Clock())

    samples.note(0, 0, 0, 0.0)
    samples.note(1, 2, 1, 0.25)

    assert samples.take() == [Load(100.0, 2, 1, 0.25)]


def test_vllm_finds_the_logger_and_tells_it_of_its_scheduler(monkeypatch: pytest.MonkeyPatch) -> None:
    samples = LoadSamples(Clock())
    monkeypatch.setattr(engine_load, "SAMPLES", samples)

    assert LoadLogger in load_stat_logger_plugin_factories()
    assert [each.value for each in entry_points(group="vllm.stat_logger_plugins")] == [
        "trellis_train.rollout.engine_load:LoadLogger"
    ]
    logger = LoadLogger(None)
    logger.record(None, None)
    stats = SchedulerStats(
        num_running_reqs=3, num_waiting_reqs=2, num_skipped_waiting_reqs=1, kv_cache_usage=0.75
    )
    logger.record(stats, None, engine_idx=0)

    assert samples.take() == [Load(100.0, 3, 3, 0.75)]
