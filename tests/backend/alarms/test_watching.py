"""The detector as a whole: how metrics arrive does not matter, and nothing that a run says breaks it."""

import math
import time
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from trellis_api.jobs.alarms.detector import observe
from trellis_api.jobs.alarms.rules import RULES
from trellis_api.jobs.alarms.watch import MAX_TRACKS, Watch

KEYS = [
    "actor/pg_loss",
    "actor/grad_norm",
    "actor/ppo_kl",
    "actor/kl_loss",
    "actor/entropy",
    "critic/score/max",
    "critic/score/min",
    "training/uniform_group_fraction",
    "training/rollout_importance_weight_mean",
    "training/rollout_actor_probs_pearson_corr",
    "training/rollout_probs_diff_mean",
    "response_length/clip_ratio",
    "train/loss",
    "val/loss",
    "perf/throughput",
    "kl",
]
VALUES = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from([0.0, 1.0, -0.0, 1e308, -1e308, 5e-324]),
)
STEPS = st.lists(
    st.tuples(st.integers(0, 60), st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=len(KEYS))),
    max_size=60,
)


@settings(max_examples=200, deadline=None)
@given(STEPS)
def test_nothing_that_a_run_reports_breaks_the_rules(steps: list[tuple[int, dict[str, float]]]) -> None:
    watch = Watch()

    changes = observe(watch, steps)

    for change in changes:
        assert change.value is None or math.isfinite(change.value)
        assert change.first_step <= change.step
    Watch.model_validate_json(watch.model_dump_json())


@settings(max_examples=100, deadline=None)
@given(STEPS, st.integers(1, 7), st.randoms())
def test_batches_repetitions_and_the_order_of_keys_change_nothing(
    steps: list[tuple[int, dict[str, float]]], size: int, order: Any
) -> None:
    steps = sorted(dict(steps).items())
    whole, pieces = Watch(), Watch()

    expected = observe(whole, steps)
    found = []
    for start in range(0, len(steps), size):
        batch = []
        for step, values in steps[start : start + size]:
            items = list(values.items())
            order.shuffle(items)
            batch.append((step, dict(items)))
        pieces = Watch.model_validate(pieces.model_dump())  # the API was restarted
        found += observe(pieces, batch)
        assert observe(pieces, batch) == []  # the same values once more

    assert [repr(change) for change in found] == [repr(change) for change in expected]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0.5, 1.5), min_size=1, max_size=200))
def test_values_around_one_level_raise_nothing(curve: list[float]) -> None:
    """Whatever the order: a factor of three is no explosion and no collapse."""
    for key, scale in (
        ("actor/grad_norm", 40.0),
        ("actor/ppo_kl", 0.3),
        ("actor/kl_loss", 0.6),
        ("actor/entropy", 0.5),
        ("train/loss", 0.4),
        ("training/rollout_importance_weight_mean", 1.0),
    ):
        assert observe(Watch(), [(step, {key: scale * value}) for step, value in enumerate(curve)]) == []


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0.05, 20), max_size=100))
def test_an_entropy_that_never_falls_below_the_bound_raises_nothing(curve: list[float]) -> None:
    assert observe(Watch(), [(step, {"actor/entropy": value}) for step, value in enumerate(curve)]) == []


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-6, 20), st.lists(st.floats(0.1, 1.0), max_size=100))
def test_an_entropy_within_a_tenth_of_its_highest_value_raises_nothing(
    highest: float, shares: list[float]
) -> None:
    steps = [(step, {"actor/entropy": highest * share}) for step, share in enumerate(shares)]

    assert observe(Watch(), steps) == []


@settings(max_examples=100, deadline=None)
@given(st.lists(st.floats(0.5, 5.0), min_size=1, max_size=20), st.lists(st.floats(0, 0.049), min_size=5))
def test_an_entropy_that_stays_far_below_its_start_is_always_seen(
    before: list[float], after: list[float]
) -> None:
    changes = observe(
        Watch(), [(step, {"actor/entropy": value}) for step, value in enumerate([*before, *after])]
    )

    raised = [(change.code, change.step) for change in changes if change.kind == "raised"]
    assert raised == [("entropy_collapse", len(before) + 4)]


def test_the_two_ends_of_a_score_may_come_apart() -> None:
    watch = Watch()
    changes = []
    for step in range(1, 6):
        changes += observe(watch, [(step, {"critic/score/max": 0.0})])
        changes += observe(watch, [(step, {"critic/score/min": 0.0})])

    assert [(change.code, change.step) for change in changes] == [("rewards_all_zero", 5)]


def test_steps_that_are_run_again_are_judged_again() -> None:
    watch = Watch()
    observe(watch, [(step, {"actor/entropy": 0.6}) for step in range(10)])
    observe(watch, [(step, {"actor/entropy": 0.001}) for step in range(10, 20)])

    watch.forget_behind(9)
    again = observe(watch, [(step, {"actor/entropy": 0.001}) for step in range(10, 20)])

    assert [(change.code, change.step) for change in again if change.kind == "raised"] == [
        ("entropy_collapse", 14)
    ]


def test_the_memory_stays_small_however_long_the_run_and_however_many_its_names() -> None:
    watch = Watch()
    for step in range(2_000):
        observe(watch, [(step, dict.fromkeys(KEYS, 0.5 + step % 7 / 10))])
    observe(watch, [(5_000, {f"part_{number}/loss": math.nan for number in range(10_000)})])

    assert all(len(tracks) <= MAX_TRACKS for tracks in watch.tracks.values())
    assert len(watch.tracks) <= len(RULES)
    assert len(watch.model_dump_json()) < 40_000


def test_watching_is_linear_and_cheap() -> None:
    values = dict.fromkeys(KEYS, 0.5) | {f"timing_s/{number}": 1.0 for number in range(60)}

    def measure(steps: int) -> float:
        watch = Watch()
        started = time.perf_counter()
        for step in range(steps):
            observe(watch, [(step, values)])
        return (time.perf_counter() - started) / steps

    measure(50)
    few, many = measure(200), measure(2_000)

    assert many < 5 * few
    assert many < 0.005  # seconds a step of 76 metrics; 0.0002 on a quiet machine
