"""Dry runs, and orders of benchmarks, with IDs in place of names."""

from sqlmodel import Session
from trellis_contracts.evaluation import AnyOrder, CodeScorer, CustomOrder
from trellis_contracts.rewards import RewardTerm

from trellis_api.names.resolve import DATASETS, find_id
from trellis_api.rewards.resources import REWARD_FILES, with_resource_ids
from trellis_api.rewards.schemas import DryRunCreate


def with_ids(session: Session, request: DryRunCreate) -> DryRunCreate:
    """Return the request with the IDs of its dataset and of what its rewards use."""
    terms = [each.model_dump(mode="json") for each in request.rewards]
    found = with_resource_ids(session, terms, field="rewards")
    rewards = [RewardTerm.model_validate(each) for each in found]
    dataset = find_id(session, DATASETS, request.dataset, field="dataset")
    return request.model_copy(update={"rewards": rewards, "dataset": dataset})


def with_order_ids(session: Session, orders: list[AnyOrder], *, field: str) -> list[AnyOrder]:
    """Return orders of benchmarks with the IDs of the datasets and reward files that they name."""
    return [
        _with_order_ids(session, order, field=f"{field}.{position}") for position, order in enumerate(orders)
    ]


def _with_order_ids(session: Session, order: AnyOrder, *, field: str) -> AnyOrder:
    if not isinstance(order, CustomOrder):
        return order
    scorer = order.scorer
    if isinstance(scorer, CodeScorer):
        file = find_id(session, REWARD_FILES, scorer.file, field=f"{field}.scorer.file")
        scorer = scorer.model_copy(update={"file": file})
    dataset = find_id(session, DATASETS, order.dataset, field=f"{field}.dataset")
    return order.model_copy(update={"dataset": dataset, "scorer": scorer})
