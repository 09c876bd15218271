"""Whether a sweep could run, before any run does: names, ranges, budget, and the values at the ends."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import ValidationError
from sqlmodel import Session
from trellis_contracts.recipe import Recipe
from trellis_recipes.catalogue import UnknownRecipe, get_recipe
from trellis_recipes.issues import nearest

from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.jobs import submit
from trellis_api.jobs.metrics.direction import is_validation, list_headline, suit_mode
from trellis_api.jobs.schemas import JobCreate
from trellis_api.sweeps import space
from trellis_api.sweeps.errors import InvalidSweep
from trellis_api.sweeps.schemas import (
    MAX_RUNS,
    MAX_SLOT_HOURS,
    Budget,
    Objective,
    SweepCreate,
    SweepIssue,
    SweepPreview,
)

#: Configurations that are composed in full; each takes some hundredths of a second.
_MAX_CHECKED = 60
_MAX_EXAMPLES = 5
_SPECIAL = ("rewards", "environment", "workflow")


@dataclass
class Plan:
    """A request with its defaults filled in, and what is wrong with it."""

    request: SweepCreate
    integers: dict[str, bool]
    trials: int | None
    parallel: int
    errors: list[SweepIssue] = field(default_factory=list)
    warnings: list[SweepIssue] = field(default_factory=list)


def make_plan(session: Session, settings: Settings, *, request: SweepCreate) -> Plan:
    """Fill in what was left out, and check everything; nothing is written."""
    try:
        recipe: Recipe | None = get_recipe(request.job.recipe)
    except UnknownRecipe:
        recipe = None  # the composition says so, with the nearest name
    plan = _fill_in(request, recipe, settings)
    plan.errors += _check_names(plan.request, recipe)
    plan.errors += _check_whole_numbers(plan)
    plan.errors += _check_seeds(plan.request)
    plan.errors += _check_budget(request, plan)
    plan.errors += _check_price(request, settings)
    plan.errors += _check_sizes(plan, settings)
    if not plan.errors:
        _check_values(session, settings, plan)
    if not plan.errors:
        plan.warnings += _warn(plan, recipe)
    return plan


def require_plan(session: Session, settings: Settings, *, request: SweepCreate) -> Plan:
    """Return the plan; ``InvalidSweep`` with everything that is wrong."""
    plan = make_plan(session, settings, request=request)
    if plan.errors:
        raise InvalidSweep(plan.errors[0].message, [each.model_dump() for each in plan.errors])
    return plan


def present_plan(plan: Plan) -> SweepPreview:
    """Present the plan as clients see it."""
    is_good = not plan.errors and plan.trials is not None
    return SweepPreview(
        runs=plan.request.budget.runs if is_good else None,
        trials=plan.trials if is_good else None,
        parallel=plan.parallel,
        objective=plan.request.objective,
        examples=_list_examples(plan) if is_good else [],
        errors=plan.errors,
        warnings=plan.warnings,
    )


def job_request(request: SweepCreate, *, name: str, values: dict[str, Any], seed: int) -> JobCreate:
    """Build the launch request of one run; ``ValidationError`` if a value is invalid there."""
    params, overrides = dict(request.job.params), dict(request.job.overrides)
    for parameter, value in values.items():
        if parameter.startswith(space.OVERRIDES):
            overrides[parameter.removeprefix(space.OVERRIDES)] = value
        else:
            params[parameter] = value
    fields = request.job.model_dump(mode="json")
    return JobCreate.model_validate(
        {**fields, "name": name, "params": params, "overrides": overrides, "seed": seed}
    )


def _fill_in(request: SweepCreate, recipe: Recipe | None, settings: Settings) -> Plan:
    integers = {name: space.is_integer(name, each, recipe) for name, each in request.parameters.items()}
    seeds = request.seeds or [request.job.seed]
    trials: int | None = 1
    if request.parameters:
        combinations = space.count_grid(request.parameters, integers)
        if request.search.method == "grid":
            trials = combinations
        else:
            runs = request.budget.runs
            trials = None if runs is None else max(1, runs // len(seeds))
            if combinations is not None and trials is not None:
                trials = min(trials, combinations)
    if trials is not None and request.budget.runs is not None:
        trials = min(trials, max(1, request.budget.runs // len(seeds)))
    slots = max(1, settings.total_slots // request.job.resources.gpus)
    parallel = request.parallel or slots
    early_stop = request.early_stop
    updates: dict[str, Any] = {
        "seeds": seeds,
        "objective": _fill_in_objective(request),
        "parallel": parallel,
        "early_stop": early_stop,
    }
    budget = _price_budget(request.budget, settings)
    if trials is not None:
        budget = budget.model_copy(update={"runs": min(MAX_RUNS, trials * len(seeds))})
    updates["budget"] = budget
    return Plan(request.model_copy(update=updates), integers, trials, parallel)


def _price_budget(budget: Budget, settings: Settings) -> Budget:
    """Return the budget with the slot-hours that its money buys, so that a later price does not change it."""
    if budget.cost is None or settings.slot_price is None:
        return budget
    bought = settings.slot_price.hours_for(budget.cost)
    hours = min(bought, MAX_SLOT_HOURS if budget.slot_hours is None else budget.slot_hours)
    return budget.model_copy(update={"slot_hours": hours})


def _fill_in_objective(request: SweepCreate) -> Objective:
    asked = request.objective
    known = list(list_headline(request.job.recipe))
    default = next((key for key in known if is_validation(key)), known[0] if known else None)
    metric = asked.metric or default
    if metric is None:
        return asked
    take = asked.take or ("best" if is_validation(metric) else "last")
    return Objective(metric=metric, mode=asked.mode or suit_mode(metric), take=take)


def _check_names(request: SweepCreate, recipe: Recipe | None) -> Iterator[SweepIssue]:
    for name, variation in request.parameters.items():
        place = f"parameters.{name}"
        if name == "seed":
            message = "Use seeds instead of a parameter; runs that differ only in the seed are averaged."
            yield SweepIssue(code="not_variable", field=place, message=message)
            continue
        if name.startswith(space.OVERRIDES):
            continue  # composed below, where an unknown key is refused with the nearest one
        parameter = recipe.parameter(name) if recipe is not None else None
        if parameter is None and recipe is not None:
            close = nearest(name, [each.name for each in recipe.parameters])
            hint = f" Did you mean {close}?" if close else ""
            message = f"{recipe.id} has no parameter '{name[:80]}'.{hint}"
            yield SweepIssue(code="unknown_parameter", field=place, message=message)
        elif parameter is not None and parameter.type in _SPECIAL:
            message = f"'{name}' is a {parameter.type}, which sweeps can't vary. Launch one sweep per value."
            yield SweepIssue(code="not_variable", field=place, message=message)
        elif parameter is not None and variation.values is None and parameter.type not in ("int", "float"):
            message = f"'{name}' is not numeric; provide a list of values."
            yield SweepIssue(code="no_range", field=place, message=message)


def _check_seeds(request: SweepCreate) -> Iterator[SweepIssue]:
    if len(request.seeds) > 1 and request.job.params.get("seed") is not None:
        message = "The job's seed parameter would give all runs the same seed; remove it."
        yield SweepIssue(code="seed_fixed", field="job.params.seed", message=message)


def _check_whole_numbers(plan: Plan) -> Iterator[SweepIssue]:
    for name, each in plan.request.parameters.items():
        for part, value in (("min", each.min), ("max", each.max), ("step", each.step)):
            if plan.integers[name] and isinstance(value, float) and not value.is_integer():
                message = f"'{name[:80]}' takes whole numbers; its {part} of {value:g} is none."
                yield SweepIssue(code="invalid_value", field=f"parameters.{name}", message=message)


def _check_budget(asked: SweepCreate, plan: Plan) -> Iterator[SweepIssue]:
    runs, seeds = asked.budget.runs, len(plan.request.seeds)
    if runs is not None and runs < seeds:
        message = f"Each combination runs once per seed; {runs} runs are not enough for {seeds} seeds."
        yield SweepIssue(code="too_few_runs", field="budget.runs", message=message)


def _check_price(asked: SweepCreate, settings: Settings) -> Iterator[SweepIssue]:
    if asked.budget.cost is not None and settings.slot_price is None:
        message = "A budget in money needs a price: set TRELLIS_GPU_HOUR_PRICE or TRELLIS_CPU_HOUR_PRICE."
        yield SweepIssue(code="no_price", field="budget.cost", message=message)


def _check_sizes(plan: Plan, settings: Settings) -> Iterator[SweepIssue]:
    request = plan.request
    if plan.trials is None and request.search.method == "grid":
        for name, each in request.parameters.items():
            if space.list_points(each, as_integer=plan.integers[name]) is None:
                message = f"Grid search needs points for '{name}': set values, step or count."
                yield SweepIssue(code="no_points", field=f"parameters.{name}", message=message)
    elif plan.trials is None:
        message = f"{request.search.method} search needs a number of runs."
        yield SweepIssue(code="no_budget", field="budget.runs", message=message)
    elif plan.trials * len(request.seeds) > MAX_RUNS:
        message = f"This would start {plan.trials * len(request.seeds)} runs; the maximum is {MAX_RUNS}."
        yield SweepIssue(code="too_many_runs", field="budget.runs", message=message)
    needed = plan.parallel * request.job.resources.gpus
    if request.parallel is not None and request.job.resources.gpus <= settings.total_slots < needed:
        message = (
            f"{plan.parallel} parallel runs need {needed} slots, but the platform has {settings.total_slots}."
        )
        yield SweepIssue(code="too_parallel", field="parallel", message=message)
    if request.objective.metric is None:
        message = "The recipe has no default metric. Set the objective metric."
        yield SweepIssue(code="no_metric", field="objective.metric", message=message)
    if request.search.method == "asha" and request.early_stop is None:
        message = "asha requires early_stop with rule asha and min_steps."
        yield SweepIssue(code="no_early_stop", field="early_stop", message=message)


def _check_values(session: Session, settings: Settings, plan: Plan) -> None:
    """Compose the runs at the ends of every range; what is wrong with the base is said once, as its own."""
    seen: set[tuple[str, str]] = set()
    names = {
        name if name.startswith(space.OVERRIDES) else f"params.{name}": name
        for name in plan.request.parameters
    }
    for values in _list_checked(plan):
        for issue in _check_one(session, settings, plan.request, values):
            own = names.get(issue.field)
            place = f"parameters.{own}" if own else f"job.{issue.field}".rstrip(".")
            if (place, issue.code) not in seen:
                seen.add((place, issue.code))
                told = (
                    f" ({', '.join(f'{name}={value}' for name, value in values.items())})" if values else ""
                )
                message = f"{issue.message}{told}"[:1000]
                plan.errors.append(SweepIssue(code=issue.code, field=place, message=message))


def _list_checked(plan: Plan) -> Iterator[dict[str, Any]]:
    """Yield the extremes of each parameter with the others at their first value, and all at both ends."""
    parameters, integers = plan.request.parameters, plan.integers
    limit = max(2, (_MAX_CHECKED - 2) // max(1, len(parameters)))
    ends = {
        name: space.list_extremes(each, as_integer=integers[name], limit=limit)
        for name, each in parameters.items()
    }
    first = {name: values[0] for name, values in ends.items()}
    yield first
    for name, values in ends.items():
        for value in values[1:]:
            yield {**first, name: value}
    if len(ends) > 1:
        yield {name: values[-1] for name, values in ends.items()}


def _check_one(
    session: Session, settings: Settings, request: SweepCreate, values: dict[str, Any]
) -> list[SweepIssue]:
    try:
        job = job_request(request, name=request.name, values=values, seed=request.seeds[0])
        found = submit.preview(session, request=job, settings=settings, with_forecast=False)
    except ValidationError as error:
        return [
            SweepIssue(code="invalid_value", field=".".join(map(str, each["loc"])), message=each["msg"])
            for each in error.errors()
        ]
    except DomainError as error:
        details = error.details if isinstance(error.details, list) else []
        fields = [str(each.get("field") or "") for each in details] or [""]
        return [SweepIssue(code=error.code, field=name, message=error.message) for name in fields]
    return [SweepIssue(code=each.code, field=each.field, message=each.message) for each in found.errors]


def _warn(plan: Plan, recipe: Recipe | None) -> Iterator[SweepIssue]:
    metric = plan.request.objective.metric
    if recipe is not None and metric not in recipe.headline_metrics:
        message = (
            f"'{metric}' is none of the recipe's own metrics ({', '.join(recipe.headline_metrics)}); "
            "the sweep ends with an error where the first finished run has not reported it."
        )
        yield SweepIssue(code="unusual_metric", field="objective.metric", message=message)
    budget, seeds = plan.request.budget.runs, len(plan.request.seeds)
    if plan.request.search.method == "grid" and budget is not None and plan.request.parameters:
        combinations = space.count_grid(plan.request.parameters, plan.integers) or 0
        if combinations * seeds > budget:
            message = f"The grid has {combinations * seeds} runs; the budget ends it after {budget}."
            yield SweepIssue(code="cut_grid", field="budget.runs", message=message)


def _list_examples(plan: Plan) -> list[dict[str, Any]]:
    """List the values of the first trials; later ones may depend on their results."""
    request = plan.request
    if request.search.method == "grid":
        found = space.grid(request.parameters, plan.integers)
        return [values for values, _ in zip(found, range(_MAX_EXAMPLES), strict=False)]
    drawn: list[dict[str, Any]] = []
    for trial in range(min(_MAX_EXAMPLES, plan.trials or 0)):
        drawn.append(
            space.draw(request.parameters, plan.integers, seed=request.search.seed, trial=trial, known=drawn)
        )
    return drawn


def read_integers(request: SweepCreate) -> dict[str, bool]:
    """Map the parameters of a checked request to whether they take whole numbers only."""
    try:
        recipe: Recipe | None = get_recipe(request.job.recipe)
    except UnknownRecipe:
        recipe = None
    return {name: space.is_integer(name, each, recipe) for name, each in request.parameters.items()}
