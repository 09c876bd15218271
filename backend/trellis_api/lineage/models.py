"""What models were made from, and what was made from them.

A model's row carries the whole way to it, with the names of what it was made from: jobs, models and
datasets may be deleted, and the way stays readable.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any, TypeVar

from sqlmodel import Session

from trellis_api.datasets.repository import find_dataset
from trellis_api.environments.repository import find_environment
from trellis_api.jobs.exports.training import describe_training
from trellis_api.jobs.repository import find_job, list_jobs_from_model
from trellis_api.lineage import measured as evaluations
from trellis_api.lineage.schemas import LineageEdge, LineageNode, LineageRead
from trellis_api.models import repository
from trellis_api.models.models import Model
from trellis_api.models.schemas import Lineage, Training

Row = TypeVar("Row")
#: A graph larger than this is cut: nobody reads it, and it has to end.
MAX_NODES = 500


def read_lineage(session: Session, *, model: Model) -> LineageRead:
    """Read all ancestors and descendants of a model."""
    graph = _Graph(session)
    graph.add_ancestors(model)
    graph.add_descendants(model)
    graph.add_evaluations()
    return LineageRead(
        model_id=model.id,
        nodes=list(graph.nodes.values()),
        edges=list(graph.edges.values()),
        is_cut=graph.is_cut,
    )


class _Graph:
    """Nodes and edges, each once."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.nodes: dict[str, LineageNode] = {}
        self.edges: dict[tuple[str, str, int | None], LineageEdge] = {}
        self.is_cut = False

    def add_ancestors(self, model: Model) -> None:
        self._add_model(model.id, row=model)
        made_id = model.id
        lineage = Lineage.model_validate(model.lineage)
        for training in (lineage, *lineage.ancestors):
            if training.job_id is None:
                return
            self._add_training(training, made_id)
            if training.model_id is None:
                return
            made_id = training.model_id

    def add_descendants(self, model: Model) -> None:
        waiting = deque([model.id])
        seen = {model.id}
        while waiting and len(self.nodes) < MAX_NODES:
            model_id = waiting.popleft()
            room = MAX_NODES - len(self.nodes)
            jobs = list_jobs_from_model(self._session, model_id=model_id, limit=room + 1)
            for job in self._cut(jobs, room):
                self._add_job(describe_training(self._session, job=job, step=0))
            children = repository.list_children(self._session, model_id=model_id, limit=room + 1)
            for child in self._cut(children, room):
                self._add_model(child.id, row=child)
                self._add_training(Lineage.model_validate(child.lineage), child.id)
                if child.id not in seen:
                    seen.add(child.id)
                    waiting.append(child.id)
        self.is_cut = self.is_cut or bool(waiting)

    def add_evaluations(self) -> None:
        """Add the evaluations of the models and checkpoints, and the reports on them."""
        ids = {
            kind: [node.id for node in self.nodes.values() if node.kind == kind] for kind in ("model", "job")
        }
        found = evaluations.find_measured(self._session, model_ids=ids["model"], job_ids=ids["job"])
        measured = self._cut(found, evaluations.MOST_EVALUATIONS)
        for each in measured:
            self.nodes[each.id] = LineageNode(
                id=each.id, kind="evaluation", name=each.name, exists=True, state=each.state
            )
            if source := each.job_id or each.model_id:
                self._add_edge(source, each.id, "measured", each.step)
        reports = evaluations.find_reports(self._session, evaluation_ids=[each.id for each in measured])
        for report in self._cut(reports, evaluations.MOST_REPORTS):
            self.nodes[report.id] = LineageNode(
                id=report.id, kind="report", name=report.name, exists=True, state=report.state
            )
            for evaluation_id in report.evaluations:
                self._add_edge(evaluation_id, report.id, "report")

    def _cut(self, found: Sequence[Row], limit: int) -> Sequence[Row]:
        self.is_cut = self.is_cut or len(found) > limit
        return found[:limit]

    def _add_training(self, training: Training, made_id: str) -> None:
        if training.job_id is None:
            return
        self._add_job(training)
        self._add_edge(training.job_id, made_id, "checkpoint", training.step)

    def _add_job(self, training: Training) -> None:
        """Add a job with what it started from and was trained on."""
        job_id = training.job_id
        if job_id is None:
            return
        job = find_job(self._session, job_id=job_id)
        if job is not None and training.dataset_id is None:  # registered before lineages named datasets
            training = describe_training(self._session, job=job, step=training.step or 0)
        self.nodes[job_id] = LineageNode(
            id=job_id,
            kind="job",
            name=job.name if job else training.job_name,
            exists=job is not None,
            recipe=job.recipe if job else training.recipe,
            state=job.state.value if job else None,
        )
        if training.model_id is not None:
            self._add_model(training.model_id, name=training.model_name)
            self._add_edge(training.model_id, job_id, "base")
        if training.dataset_id is not None:
            self._add_dataset(training)
            self._add_edge(training.dataset_id, job_id, "data")
        if training.environment_id is not None:
            self._add_environment(training, training.environment_id)
            self._add_edge(training.environment_id, job_id, "environment")

    def _add_model(self, model_id: str, *, row: Model | None = None, name: str | None = None) -> None:
        if model_id in self.nodes and row is None:
            return
        row = row or repository.find_model(self._session, model_id=model_id)
        self.nodes[model_id] = LineageNode(
            id=model_id,
            kind="model",
            name=row.name if row else name,
            exists=row is not None,
            state=row.state if row else None,
            form=row.lineage.get("form") if row else None,
        )

    def _add_dataset(self, training: Training) -> None:
        dataset_id = training.dataset_id or ""
        row = find_dataset(self._session, dataset_id=dataset_id)
        self.nodes[dataset_id] = LineageNode(
            id=dataset_id,
            kind="dataset",
            name=row.name if row else training.dataset_name,
            exists=row is not None,
            sha256=training.dataset_sha256,
        )

    def _add_environment(self, training: Training, environment_id: str) -> None:
        row = find_environment(self._session, environment_id=environment_id)
        self.nodes[environment_id] = LineageNode(
            id=environment_id,
            kind="environment",
            name=row.name if row else training.environment_name,
            exists=row is not None,
            state=row.state if row else None,
            sha256=training.environment_sha256,
        )

    def _add_edge(self, source: str, target: str, role: Any, step: int | None = None) -> None:
        self.edges[source, target, step] = LineageEdge(source=source, target=target, role=role, step=step)
