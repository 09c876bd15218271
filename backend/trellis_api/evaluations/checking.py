"""Checks the orders of an evaluation before anything is queued, and names what they leave open."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

from sqlmodel import Session
from trellis_contracts.evaluation import (
    AnyOrder,
    CodeScorer,
    CustomOrder,
    HarnessOrder,
    JudgeScorer,
)
from trellis_contracts.recipe import DataFormat

from trellis_api.benchmarks import repository as installs
from trellis_api.benchmarks import service as benchmarks
from trellis_api.benchmarks.schemas import InstallState
from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.datasets.repository import lock_dataset
from trellis_api.datasets.view import DatasetView, view
from trellis_api.evaluations import order_checks
from trellis_api.evaluations.errors import InvalidOrder
from trellis_api.evaluations.order_checks import Problem
from trellis_api.pipelines.needs import find_judge
from trellis_api.rewards.files import FILES

#: Of an order's columns.
_ROLES: tuple[Literal["prompt", "answer"], ...] = ("prompt", "answer")


def check_orders(
    session: Session, settings: Settings, orders: Sequence[AnyOrder], *, field: str = "benchmarks"
) -> list[AnyOrder]:
    """Return the orders with dataset versions and splits filled in; ``InvalidOrder`` lists every problem.

    Datasets and files that are named are held until the transaction ends: nothing of them is deleted before
    the caller has written down who uses them.
    """
    checked, issues = [], list[dict[str, Any]]()
    for index, order in enumerate(orders):
        pinned, problems = _check(session, settings, order)
        checked.append(pinned)
        issues += [
            {"code": code, "field": f"{field}.{index}.{place}", "message": message}
            for code, place, message in problems
        ]
    if issues:
        raise InvalidOrder(issues[0]["message"], issues)
    return checked


def names_to_install(orders: Iterable[AnyOrder]) -> list[str]:
    """List the catalogue benchmarks among the orders, each once."""
    named = (order.benchmark for order in orders if not isinstance(order, CustomOrder | HarnessOrder))
    return list(dict.fromkeys(named))


def judges_of(orders: Iterable[AnyOrder]) -> list[str]:
    """List the names of the judges that the orders ask, each once."""
    scorers = [order.scorer for order in orders if isinstance(order, CustomOrder)]
    return list(dict.fromkeys(scorer.judge for scorer in scorers if isinstance(scorer, JudgeScorer)))


def known_groups(session: Session, name: str) -> dict[str, list[str]]:
    """Map each kind of group to its names: from the installed files, else from the catalogue."""
    row = installs.find_install(session, name=name)
    if row is not None and row.state == InstallState.READY and row.groups:
        return {kind: list(counts) for kind, counts in row.groups.items()}
    return benchmarks.find_entry(name).groups


def _check(session: Session, settings: Settings, order: AnyOrder) -> tuple[AnyOrder, list[Problem]]:
    if isinstance(order, CustomOrder):
        return _check_custom(session, settings, order)
    problems = []
    if isinstance(order, HarnessOrder):
        problems += list(order_checks.check_form(order, {}))
        if obstacle := benchmarks.find_harness_obstacle(settings):
            problems.append(("harness_missing", "task", obstacle))
        return order, problems
    entry = benchmarks.find_entry(order.benchmark)
    problems += list(order_checks.check_form(order, known_groups(session, order.benchmark)))
    if entry.runs_code and (obstacle_text := benchmarks.find_sandbox_obstacle(session)):
        problems.append(("sandbox_missing", "benchmark", obstacle_text.en))
    return order, problems


def _check_custom(
    session: Session, settings: Settings, order: CustomOrder
) -> tuple[CustomOrder, list[Problem]]:
    problems = [*order_checks.check_form(order, {}), *_check_scorer(session, settings, order)]
    lock_dataset(session, dataset_id=order.dataset, is_shared=True)
    try:
        dataset = view(session, settings, dataset_id=order.dataset, revision=order.version, split=order.split)
    except DomainError as error:
        field = "split" if error.code == "split_not_found" else "dataset"
        return order, [*problems, (error.code, field, error.message)]
    problems += order_checks.check_columns(order, dataset)
    return _pin(order, dataset), problems


def _pin(order: CustomOrder, dataset: DatasetView) -> CustomOrder:
    """Say in full what is read: a branch may move on before it is run, and the import knows the columns."""
    columns = dict(order.columns)
    if dataset.format is DataFormat.PROMPT_ANSWER:
        for role in _ROLES:
            if role in dataset.format_columns:
                columns.setdefault(role, dataset.format_columns[role])
    return order.model_copy(update={"version": dataset.version, "split": dataset.split, "columns": columns})


def _check_scorer(session: Session, settings: Settings, order: CustomOrder) -> list[Problem]:
    scorer = order.scorer
    if isinstance(scorer, JudgeScorer):
        try:
            find_judge(settings, scorer.judge)
        except DomainError as error:
            return [(error.code, "scorer.judge", error.message)]
    if isinstance(scorer, CodeScorer):
        problems: list[Problem] = []
        if FILES.lock(session, scorer.file, is_shared=True) is None:
            message = f"Reward file '{scorer.file}' not found; it may have been deleted."
            problems.append(("unknown_reward_file", "scorer.file", message))
        if obstacle := benchmarks.find_sandbox_obstacle(session):
            problems.append(("sandbox_missing", "scorer", obstacle.en))
        return problems
    return []
