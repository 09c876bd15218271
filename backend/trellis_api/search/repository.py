"""One query for each kind of thing that has a name."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from sqlalchemy import ColumnElement, Row, Select, case, null, or_, select, true
from sqlmodel import Session, col

from trellis_api.datasets.models import Dataset
from trellis_api.endpoints.models import Endpoint
from trellis_api.environments.models import Environment
from trellis_api.evaluations.models import Evaluation
from trellis_api.job_pipelines.models import JobPipeline
from trellis_api.jobs.models import EVALUATE, SERVE, Job
from trellis_api.models.models import Model
from trellis_api.pipelines.models import SavedPipeline
from trellis_api.registry.models import NamedModel
from trellis_api.reports.models import Report
from trellis_api.rewards.models import RewardFile
from trellis_api.search.schemas import FoundKind
from trellis_api.sweeps.models import Sweep
from trellis_api.workflows.models import WorkflowFile

_NOTHING: ColumnElement[Any] = null()
_ALL: ColumnElement[bool] = true()


@dataclass(frozen=True)
class Source:
    """Where things of a kind are: expressions for what is shown of them."""

    id: Any
    name: Any
    created_at: Any
    state: Any = _NOTHING
    detail: Any = _NOTHING
    where: ColumnElement[bool] = _ALL


SOURCES: dict[FoundKind, Source] = {
    # Jobs that carry out an evaluation or serve an endpoint are found as what they carry out.
    FoundKind.JOB: Source(
        Job.id,
        Job.name,
        Job.created_at,
        Job.state,
        Job.recipe,
        col(Job.kind).not_in((EVALUATE, SERVE)),
    ),
    FoundKind.SWEEP: Source(Sweep.id, Sweep.name, Sweep.created_at, Sweep.state, Sweep.recipe),
    FoundKind.DATASET: Source(Dataset.id, Dataset.name, Dataset.created_at, Dataset.state),
    FoundKind.MODEL: Source(Model.id, Model.name, Model.created_at, Model.state),
    FoundKind.NAMED_MODEL: Source(NamedModel.name, NamedModel.name, NamedModel.created_at),
    FoundKind.EVALUATION: Source(
        Evaluation.id,
        Evaluation.name,
        Evaluation.created_at,
        Job.state,
        Evaluation.target_name,
        col(Evaluation.job_id) == col(Job.id),
    ),
    FoundKind.REPORT: Source(Report.id, Report.name, Report.created_at, Report.state),
    FoundKind.PIPELINE: Source(SavedPipeline.id, SavedPipeline.name, SavedPipeline.created_at),
    FoundKind.JOB_PIPELINE: Source(
        JobPipeline.id, JobPipeline.name, JobPipeline.created_at, JobPipeline.state
    ),
    FoundKind.ENVIRONMENT: Source(
        Environment.id, Environment.name, Environment.created_at, Environment.state, Environment.kind
    ),
    FoundKind.WORKFLOW: Source(
        WorkflowFile.id, WorkflowFile.name, WorkflowFile.created_at, WorkflowFile.state
    ),
    FoundKind.REWARD_FILE: Source(RewardFile.id, RewardFile.name, RewardFile.created_at),
}


def find(session: Session, *, source: Source, words: Sequence[str], limit: int) -> Sequence[Row[Any]]:
    """Find the rows whose name or id has every word, each with id, name, state, detail and time."""
    columns = (source.id, source.name, source.state, source.detail, source.created_at)
    statement = _narrow(select(*columns).where(source.where), words, source)
    return session.execute(statement.limit(limit)).all()


def find_endpoints(session: Session, *, words: Sequence[str], limit: int) -> list[tuple[Endpoint, Job]]:
    """Find endpoints whose name or id has every word, with their jobs, which determine their state."""
    source = Source(Endpoint.id, Endpoint.name, Endpoint.created_at)
    pairs = cast(Select[Any], select(Endpoint, Job).where(col(Endpoint.job_id) == col(Job.id)))
    rows = session.execute(_narrow(pairs, words, source).limit(limit)).all()
    return [(row[0], row[1]) for row in rows]


def _narrow(statement: Select[Any], words: Sequence[str], source: Source) -> Select[Any]:
    """Select rows with every word; names that start with the first one come first, then the newest.

    A word fits an id that begins with it, beyond the prefix that all ids of a kind share.
    """
    for word in words:
        has = [source.name.icontains(word, autoescape=True)]
        if len(word.partition("_")[2]) > 1:
            has.append(source.id.istartswith(word, autoescape=True))
        statement = statement.where(or_(*has))
    newest = (source.created_at.desc(), source.id)
    if not words:
        return statement.order_by(*newest)
    begins = source.name.istartswith(words[0], autoescape=True)
    return statement.order_by(case((begins, 0), else_=1), *newest)
