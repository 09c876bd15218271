"""Values of trials: combinations, draws, Optuna's proposals, and which runs are stopped early."""

import math
from typing import Any

import pytest
from pydantic import ValidationError
from trellis_api.sweeps import importance, space
from trellis_api.sweeps.schemas import Search, StopRule, Variation
from trellis_api.sweeps.search import Trial, propose
from trellis_api.sweeps.stopping import Rung, is_worse, list_rungs, read_rung

RATE = Variation(min=1e-6, max=1e-3, scale="log")
WHOLE = Variation(min=1, max=64, scale="log")


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"values": [1], "min": 1, "max": 2},
        {"values": [1, 1]},
        {"min": 2, "max": 1},
        {"min": 0, "max": 1, "scale": "log"},
        {"values": [1], "step": 1},
        {"min": 0, "max": 1, "step": 1e-9},
    ],
)
def test_a_variation_that_says_two_things_or_none_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Variation.model_validate(wrong)


def test_values_one_and_true_are_different() -> None:
    assert Variation(values=[1, True]).values == [1, True]


@pytest.mark.parametrize(
    ("variation", "as_integer", "points"),
    [
        (Variation(min=0, max=1, step=0.25), False, [0, 0.25, 0.5, 0.75, 1]),
        (Variation(min=0.1, max=0.7, step=0.2), False, [0.1, 0.3, 0.5, 0.7]),
        (Variation(min=1e-5, max=1e-3, scale="log", count=3), False, [1e-5, 1e-4, 1e-3]),
        (Variation(min=1, max=3, count=5), True, [1, 2, 3]),
        (RATE, False, None),
    ],
)
def test_points_of_a_range_are_numbers_that_a_person_would_write(
    variation: Variation, as_integer: bool, points: Any
) -> None:
    assert space.list_points(variation, as_integer=as_integer) == points


def test_a_grid_is_every_combination_once() -> None:
    parameters = {"a": Variation(values=[1, 2]), "b": Variation(values=["x", "y", "z"])}
    integers = dict.fromkeys(parameters, False)

    found = list(space.grid(parameters, integers))

    assert len(found) == space.count_grid(parameters, integers) == 6
    assert len({str(each) for each in found}) == 6
    assert space.grid_at(parameters, integers, 5) == found[5]
    assert space.grid_at(parameters, integers, 6) is None


def test_draws_are_repeatable_within_bounds_and_even_on_their_scale() -> None:
    parameters, integers = {"rate": RATE, "n": WHOLE}, {"rate": False, "n": True}

    drawn = [space.draw(parameters, integers, seed=3, trial=each, known=[]) for each in range(300)]

    assert drawn[7] == space.draw(parameters, integers, seed=3, trial=7, known=[])
    assert all(1e-6 <= each["rate"] <= 1e-3 and 1 <= each["n"] <= 64 for each in drawn)
    assert all(isinstance(each["n"], int) for each in drawn)
    decades = [math.floor(math.log10(each["rate"])) for each in drawn]
    assert all(70 < decades.count(decade) < 130 for decade in (-6, -5, -4))


def test_draws_from_lists_do_not_repeat_while_others_are_left() -> None:
    parameters = {"a": Variation(values=[1, 2, 3])}
    known: list[dict[str, Any]] = []
    for trial in range(3):
        known.append(space.draw(parameters, {"a": True}, seed=0, trial=trial, known=known))

    assert sorted(each["a"] for each in known) == [1, 2, 3]


def test_bayesian_search_comes_nearer_to_the_optimum_than_chance() -> None:
    """The distance from 1e-4 in decades, of the last ten of thirty trials, over three seeds."""

    def search(method: Any, seed: int) -> float:
        trials: list[Trial] = []
        for _ in range(30):
            values = propose(
                Search(method=method, seed=seed), {"rate": RATE}, {"rate": False},
                trials=trials, mode="min", budget=30,
            )  # fmt: skip
            assert values is not None
            trials.append(Trial(values, abs(math.log10(values["rate"]) + 4), is_over=True))
        return sum(trial.value or 0 for trial in trials[-10:]) / 10

    smart = sum(search("bayesian", seed) for seed in range(3)) / 3
    chance = sum(search("random", seed) for seed in range(3)) / 3

    assert smart < 0.6 * chance


def test_bayesian_search_is_the_same_whoever_asks_and_takes_runs_that_are_not_over() -> None:
    done = [Trial({"rate": 10.0**-each, "n": each}, 1.0 / each, True) for each in range(3, 7)]
    trials = [*done, Trial({"rate": 1e-5, "n": 4}, None, False), Trial({"rate": 1e-4, "n": 9}, None, True)]

    def ask() -> Any:
        return propose(
            Search(method="bayesian"), {"rate": RATE, "n": WHOLE}, {"rate": False, "n": True},
            trials=trials, mode="max", budget=12,
        )  # fmt: skip

    assert ask() == ask()
    assert isinstance(ask()["n"], int)
    assert 1e-6 <= ask()["rate"] <= 1e-3


@pytest.mark.parametrize(
    ("variation", "as_integer"),
    [
        (Variation(min=1, max=8, step=1.5), True),
        (Variation(min=0.1, max=0.7, step=0.2), False),
        (Variation(min=1, max=2, step=1 / 3), False),
        (Variation(min=1234567.25, max=1234590, step=0.75), False),
    ],
)
def test_bayesian_search_proposes_the_points_of_a_range_with_steps(
    variation: Variation, as_integer: bool
) -> None:
    points = space.list_points(variation, as_integer=as_integer) or []
    trials: list[Trial] = []
    for _ in range(12):
        values = propose(
            Search(method="bayesian"), {"x": variation}, {"x": as_integer},
            trials=trials, mode="min", budget=12,
        )  # fmt: skip
        assert values is not None
        assert values["x"] in points
        trials.append(Trial(values, float(values["x"]), is_over=True))


def test_seeds_alone_are_one_trial() -> None:
    assert propose(Search(), {}, {}, trials=[], mode="max", budget=1) == {}
    assert propose(Search(), {}, {}, trials=[Trial({}, 1.0, True)], mode="max", budget=1) is None


def rung(value: float, mean: float | None = None) -> Rung:
    return Rung(4, value, value if mean is None else mean, value)


@pytest.mark.parametrize(
    ("own", "others", "stops"),
    [
        (3.0, [1.0], False),  # too few to compare
        (3.0, [1.0, 2.0], True),  # only the best third goes on
        (1.0, [2.0, 3.0], False),
        (2.0, [2.0, 2.0], False),  # as good as the best
        (2.0, [1.0, 3.0, 4.0, 5.0, 6.0], False),  # second of six
        (3.5, [1.0, 3.0, 4.0, 5.0, 6.0], True),
        (math.inf, [1.0, 3.0], True),
    ],
)
def test_asha_lets_the_best_third_go_on(own: float, others: list[float], stops: bool) -> None:
    rule = StopRule(rule="asha", min_steps=4, factor=3, min_runs=3)

    assert is_worse(rule, rung(own), map(rung, others), is_less_better=True) is stops
    assert is_worse(rule, rung(-own), [rung(-each) for each in others], is_less_better=False) is stops


def test_the_median_rule_compares_the_best_with_the_others_means() -> None:
    rule = StopRule(rule="median", min_steps=4, min_runs=3)
    others = [rung(1.0, 2.0), rung(1.5, 2.5), rung(4.0, 4.0)]

    assert not is_worse(rule, rung(2.4), others, is_less_better=True)
    assert is_worse(rule, rung(2.6), others, is_less_better=True)


def test_a_rung_is_what_was_first_measured_at_its_step_or_behind() -> None:
    points = [(1, 4.0), (5, 2.0), (9, 3.0), (12, math.nan)]

    assert read_rung(points, 4, is_less_better=True) == Rung(4, 2.0, 3.0, 2.0)
    assert read_rung(points, 9, is_less_better=True) == Rung(9, 3.0, 3.0, 2.0)
    assert read_rung(points, 12, is_less_better=True) == Rung(12, math.inf, math.inf, 2.0)
    assert read_rung(points, 13, is_less_better=True) is None


def test_rungs_grow_by_the_factor_or_come_evenly() -> None:
    assert list_rungs(StopRule(rule="asha", min_steps=2, factor=3), last_step=60) == [2, 6, 18, 54]
    assert list_rungs(StopRule(rule="median", min_steps=20), last_step=60) == [20, 40, 60]


def test_importance_sees_an_optimum_in_the_middle_and_no_effect_of_noise() -> None:
    runs = [
        ({"rate": 10.0**-each, "noise": (each * 7) % 5, "kind": "ab"[each % 2]}, abs(each - 6.0))
        for each in range(1, 13)
    ]

    found = importance.measure(runs, ["rate", "noise", "kind"])

    assert found.parameters[0].parameter == "rate"
    assert found.parameters[0].importance > 0.4
    assert found.parameters[0].p_value < 0.05
    assert abs(found.parameters[0].correlation or 0) < 0.3
    others = {each.parameter: each for each in found.parameters[1:]}
    assert others["noise"].p_value > 0.05
    assert others["kind"].correlation is None
    assert importance.measure(runs[:5], ["rate"]).parameters == []
