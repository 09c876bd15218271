"""The datasets of the platform that evaluations measured on, by name also where they were deleted since."""

from collections.abc import Iterable, Sequence

from sqlmodel import Session
from trellis_contracts.evaluation import AnyOrder, CustomOrder

from trellis_api.datasets.repository import map_dataset_names
from trellis_api.evaluations import repository
from trellis_api.evaluations.models import Evaluation
from trellis_api.evaluations.schemas import MeasuredDataset
from trellis_api.evaluations.service import read_request

#: By the label of the benchmark.
Datasets = dict[str, MeasuredDataset]


def list_dataset_ids(orders: Iterable[AnyOrder]) -> set[str]:
    """Return the IDs of the platform's datasets that some benchmarks measure on."""
    return {order.dataset for order in orders if isinstance(order, CustomOrder)}


def map_measured_datasets(session: Session, *, evaluations: Sequence[Evaluation]) -> dict[str, Datasets]:
    """Return the datasets that each evaluation measures on, by its ID and by label, with one query."""
    orders = {row.id: _list_orders(row) for row in evaluations}
    ids = set[str]().union(*(list_dataset_ids(each) for each in orders.values()))
    names = map_dataset_names(session, dataset_ids=ids) if ids else {}
    return {
        row.id: {str(order.label): _describe(order, row, names) for order in orders[row.id]}
        for row in evaluations
    }


def map_datasets_of_scores(session: Session, *, evaluation_ids: Iterable[str]) -> dict[str, Datasets]:
    """Return the datasets that these evaluations measure on, by evaluation ID and by label."""
    rows = repository.list_by_ids(session, evaluation_ids=set(evaluation_ids))
    return map_measured_datasets(session, evaluations=rows)


def _list_orders(row: Evaluation) -> list[CustomOrder]:
    if "custom" not in row.benchmark_names:
        return []
    return [order for order in read_request(row).benchmarks if isinstance(order, CustomOrder)]


def _describe(order: CustomOrder, row: Evaluation, names: dict[str, str]) -> MeasuredDataset:
    is_there = order.dataset in names
    return MeasuredDataset(
        id=order.dataset,
        name=names[order.dataset] if is_there else row.dataset_names.get(order.dataset),
        version=order.version,
        is_deleted=not is_there,
    )
