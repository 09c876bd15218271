"""Dry runs with names in place of IDs."""

from sqlmodel import Session
from trellis_contracts.rewards import RewardTerm

from trellis_api.names.resolve import DATASETS, find_id
from trellis_api.rewards.resources import with_resource_ids
from trellis_api.rewards.schemas import DryRunCreate


def with_ids(session: Session, request: DryRunCreate) -> DryRunCreate:
    """Return the request with the IDs of its dataset and of what its rewards use."""
    terms = [each.model_dump(mode="json") for each in request.rewards]
    found = with_resource_ids(session, terms, field="rewards")
    rewards = [RewardTerm.model_validate(each) for each in found]
    dataset = find_id(session, DATASETS, request.dataset, field="dataset")
    return request.model_copy(update={"rewards": rewards, "dataset": dataset})
