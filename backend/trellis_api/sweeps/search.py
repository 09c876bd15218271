"""Chooses the values of a trial from what earlier trials came to.

A trial is chosen from its number and the rows alone, so whoever chooses it after a restart goes on as if
nothing had happened. Bayesian search is Optuna's TPE on a study that is built from the rows each time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from trellis_api.sweeps import space
from trellis_api.sweeps.schemas import Search, Variation
from trellis_api.sweeps.space import Values

#: Draws at random before the model of what is good begins.
_MIN_STARTUP, _MAX_STARTUP = 4, 10


@dataclass(frozen=True)
class Trial:
    """A trial that was begun; ``value`` is None while it runs, and for good where it failed."""

    values: Values
    value: float | None
    is_over: bool


def propose(
    search: Search,
    parameters: Mapping[str, Variation],
    integers: Mapping[str, bool],
    *,
    trials: Sequence[Trial],
    mode: Literal["min", "max"],
    budget: int,
) -> Values | None:
    """Propose the values of the next trial; None if a grid has no more."""
    number = len(trials)
    if not parameters:
        return {} if number == 0 else None
    if search.method == "grid":
        return space.grid_at(parameters, integers, number)
    known = [trial.values for trial in trials]
    startup = max(_MIN_STARTUP, min(_MAX_STARTUP, budget // 3))
    measured = sum(trial.value is not None for trial in trials)
    if search.method != "bayesian" or measured < startup:
        return space.draw(parameters, integers, seed=search.seed, trial=number, known=known)
    return _ask_tpe(parameters, integers, trials=trials, mode=mode, seed=search.seed, number=number)


def _ask_tpe(
    parameters: Mapping[str, Variation],
    integers: Mapping[str, bool],
    *,
    trials: Sequence[Trial],
    mode: str,
    seed: int,
    number: int,
) -> Values:
    # Loaded where it is needed: few workers ever search so.
    import optuna
    from optuna.trial import TrialState, create_trial

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    distributions = {name: _distribution(each, integers[name]) for name, each in parameters.items()}
    points = {
        name: space.list_points(each, as_integer=integers[name]) or []
        for name, each in parameters.items()
        if each.step is not None
    }
    sampler = optuna.samplers.TPESampler(seed=(seed * 1_000_003 + number) % 2**32, n_startup_trials=0)
    direction = "minimize" if mode == "min" else "maximize"
    study = optuna.create_study(direction=direction, sampler=sampler)
    for trial in trials:
        if trial.value is None and trial.is_over:
            continue
        state = TrialState.COMPLETE if trial.value is not None and trial.is_over else TrialState.RUNNING
        study.add_trial(
            create_trial(
                state=state,
                value=trial.value if state == TrialState.COMPLETE else None,
                params={
                    name: _place(points[name], value) if name in points else value
                    for name, value in trial.values.items()
                },
                distributions=distributions,
            )
        )
    found: Values = {}
    for name, value in study.ask(distributions).params.items():
        if name in points:
            found[name] = points[name][value]
        else:
            found[name] = space.clean(value, as_integer=integers[name]) if isinstance(value, float) else value
    return found


def _place(points: Sequence[float], value: float) -> int:
    return min(range(len(points)), key=lambda index: abs(points[index] - value))


def _distribution(variation: Variation, as_integer: bool) -> Any:
    from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution

    if variation.values is not None:
        return CategoricalDistribution(variation.values)
    if variation.step is not None:
        # The points' numbers: the points themselves are rounded, so not all lie on one grid.
        return IntDistribution(0, len(space.list_points(variation, as_integer=as_integer) or [0]) - 1)
    low, high = variation.min or 0, variation.max or 0
    is_log = variation.scale == "log"
    if as_integer:
        return IntDistribution(round(low), round(high), log=is_log)
    # Values are kept with six digits, which may lie just outside the exact ends.
    low, high = space.clean(low, as_integer=False), space.clean(high, as_integer=False)
    return FloatDistribution(low, high, log=is_log)
