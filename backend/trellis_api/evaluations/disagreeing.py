"""The samples of a benchmark on which several evaluations disagree, with the answer of each."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from sqlmodel import Session
from trellis_contracts.evaluation import Sample
from trellis_evaluation.samples.disagreements import Disagreement
from trellis_evaluation.samples.disagreements import list_disagreements as find_disagreements
from trellis_evaluation.samples.store import open_store

from trellis_api.core.settings import Settings
from trellis_api.evaluations import comparing
from trellis_api.evaluations.errors import InvalidEvaluationComparison, NoSharedBenchmark
from trellis_api.evaluations.folder import samples_path
from trellis_api.evaluations.samples import store_errors
from trellis_api.evaluations.schemas import Changed, ComparedAnswer, DisagreementPage, DisagreementRead
from trellis_api.evaluations.service import read_request


@dataclass(frozen=True)
class DisagreementQuery:
    """Which samples are wanted, and whose; the first evaluation is the baseline."""

    label: str
    evaluation_ids: list[str]
    changed: Changed
    #: Only where this one differs from the baseline.
    evaluation_id: str | None


def find_having(session: Session, *, ids: Sequence[str], label: str) -> list[str]:
    """Return those that have the benchmark; raises unless these are the first and at least one other."""
    chosen = comparing.find_chosen(session, ids=ids)
    labels = {row.id: [order.label for order in read_request(row).benchmarks] for row in chosen.rows}
    having = [each for each in ids if label in labels[each]]
    if len(having) < comparing.LEAST_COMPARED or having[0] != ids[0]:
        raise NoSharedBenchmark(
            f"The baseline and at least one other need the benchmark '{label}'.", {"benchmarks": labels}
        )
    return having


def read_page(
    settings: Settings, query: DisagreementQuery, *, cursor: str | None, limit: int
) -> DisagreementPage:
    """Read one page; no transaction is open meanwhile."""
    baseline, *others = query.evaluation_ids
    if query.evaluation_id is not None and query.evaluation_id not in others:
        raise InvalidEvaluationComparison(
            f"{query.evaluation_id} isn't compared with the baseline on '{query.label}'."
        )
    among = None if query.evaluation_id is None else [others.index(query.evaluation_id)]
    with store_errors(), ExitStack() as stack:
        stores = [
            stack.enter_context(open_store(samples_path(settings, each, query.label)))
            for each in (baseline, *others)
        ]
        page = find_disagreements(
            stores[0], stores[1:], changed=query.changed, among=among, cursor=cursor, limit=limit
        )
    return DisagreementPage(
        label=query.label,
        items=[_present(row, query.evaluation_ids) for row in page.rows],
        next_cursor=page.next_cursor,
        total=page.total,
    )


def _present(row: Disagreement, evaluation_ids: Sequence[str]) -> DisagreementRead:
    samples = zip(evaluation_ids, (row.baseline, *row.others), strict=True)
    return DisagreementRead(
        key=row.baseline.key,
        number=row.baseline.number,
        prompt=row.baseline.prompt,
        gold=row.baseline.gold,
        answers=[_answer(each, sample) for each, sample in samples if sample is not None],
    )


def _answer(evaluation_id: str, sample: Sample) -> ComparedAnswer:
    return ComparedAnswer(
        evaluation_id=evaluation_id,
        position=sample.position,
        number=sample.number,
        verdict=sample.verdict,
        score=sample.score,
        extracted=sample.extracted,
    )
