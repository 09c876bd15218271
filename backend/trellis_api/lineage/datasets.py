"""Where the rows of a dataset came from, and what came of them: from sources to models and reports."""

from collections.abc import Sequence
from typing import Any

from sqlmodel import Session, col, or_, select
from trellis_contracts.data_tasks import DataTaskKind

from trellis_api.data_tasks.models import DataTask
from trellis_api.data_tasks.repository import WITHOUT_RESULT
from trellis_api.datasets import repository, service, version_repository
from trellis_api.datasets.models import Dataset, DatasetVersion
from trellis_api.jobs.models import Job
from trellis_api.lineage import measured as evaluations
from trellis_api.lineage.measured import Measured
from trellis_api.lineage.schemas import DataLineageEdge, DataLineageNode, DataLineageRead
from trellis_api.models.models import Model
from trellis_api.models.repository import map_model_names

#: Of each kind, the newest: nobody reads more, and it has to end.
MOST_VERSIONS, MOST_TASKS, MOST_JOBS, MOST_MODELS = 200, 200, 200, 200
#: Tasks of these kinds leave rows; the others only look.
_MAKERS = (DataTaskKind.IMPORT, DataTaskKind.PIPELINE, DataTaskKind.GENERATE)


def read(session: Session, *, dataset_id: str) -> DataLineageRead:
    """Read everything that a dataset is connected with."""
    dataset = service.get_dataset(session, dataset_id=dataset_id)
    graph = _Graph(session, dataset)
    graph.add_versions()
    graph.add_tasks()
    graph.add_jobs()
    graph.add_evaluations()
    return DataLineageRead(
        dataset=dataset_id,
        nodes=list(graph.nodes.values()),
        edges=[edge for edge in graph.edges.values() if {edge.source, edge.target} <= graph.nodes.keys()],
        is_cut=graph.is_cut,
    )


class _Graph:
    """Nodes and edges, each once."""

    def __init__(self, session: Session, dataset: Dataset) -> None:
        self._session = session
        self._dataset = dataset
        self._versions: Sequence[DatasetVersion] = []
        self.nodes: dict[str, DataLineageNode] = {}
        self.edges: dict[tuple[str, str, str], DataLineageEdge] = {}
        self.is_cut = False

    def add_versions(self) -> None:
        """Add the newest versions, and what each was made from."""
        found = version_repository.list_versions(
            self._session, dataset_id=self._dataset.id, limit=MOST_VERSIONS + 1
        )
        self._versions = self._cut(found, MOST_VERSIONS)
        for row in self._versions:
            self._add_version(self._dataset, row.id, row)
            for parent in row.parents:
                self._link(parent, row.id, "parent")

    def add_tasks(self) -> None:
        """Add the tasks that made versions of the dataset, and those that made other datasets from them."""
        made_here = col(DataTask.made_dataset_id) == self._dataset.id
        read_here = col(DataTask.dataset_id) == self._dataset.id
        query = (
            select(DataTask)
            .options(WITHOUT_RESULT)
            .where(or_(made_here, read_here), col(DataTask.kind).in_(_MAKERS))
            .order_by(col(DataTask.created_at).desc(), col(DataTask.id).desc())
        )
        tasks = self._cut(self._session.exec(query.limit(MOST_TASKS + 1)).all(), MOST_TASKS)
        for task in tasks:
            self._add_task(task)
        known: set[str | None] = {task.id for task in tasks}
        if not any(task.kind == DataTaskKind.IMPORT for task in tasks):
            self._add_forgotten_source(known)

    def add_jobs(self) -> None:
        """Add the jobs that read the versions, and the models that they made."""
        is_of = or_(
            col(Job.dataset_id) == self._dataset.id, col(Job.validation_dataset_id) == self._dataset.id
        )
        query = select(Job).where(is_of).order_by(col(Job.created_at).desc(), col(Job.id).desc())
        jobs = self._cut(self._session.exec(query.limit(MOST_JOBS + 1)).all(), MOST_JOBS)
        for job in jobs:
            self._add_job(job)
        made_by = col(Model.source_job_id).in_([job.id for job in jobs])
        models = select(Model).where(made_by).order_by(col(Model.created_at).desc(), col(Model.id).desc())
        for model in self._cut(self._session.exec(models.limit(MOST_MODELS + 1)).all(), MOST_MODELS):
            self.nodes[model.id] = DataLineageNode(
                id=model.id, kind="model", name=model.name, state=model.state
            )
            self._link(str(model.source_job_id), model.id, "model")

    def add_evaluations(self) -> None:
        """Add evaluations on the versions and of models trained on them, and the reports on those."""
        found = evaluations.find_measured(
            self._session,
            model_ids=self._list_ids("model"),
            job_ids=self._list_ids("job"),
            dataset_id=self._dataset.id,
        )
        measured = self._cut(found, evaluations.MOST_EVALUATIONS)
        names = map_model_names(
            self._session, model_ids=[each.model_id for each in measured if each.model_id]
        )
        for each in measured:
            self._add_evaluation(each, names)
        ids = [each.id for each in measured]
        reports = evaluations.find_reports(self._session, evaluation_ids=ids)
        for report in self._cut(reports, evaluations.MOST_REPORTS):
            self.nodes[report.id] = DataLineageNode(
                id=report.id, kind="report", name=report.name, state=report.state
            )
            for evaluation_id in report.evaluations:
                self._link(evaluation_id, report.id, "report")

    def _add_evaluation(self, measured: Measured, model_names: dict[str, str]) -> None:
        self.nodes[measured.id] = DataLineageNode(
            id=measured.id, kind="evaluation", name=measured.name, state=measured.state
        )
        for dataset_id, version_id in measured.rows:
            if dataset_id == self._dataset.id:
                self._link(version_id, measured.id, "benchmark")
        if measured.job_id is not None and measured.job_id not in self.nodes:
            job = self._session.get(Job, measured.job_id)
            self.nodes[measured.job_id] = DataLineageNode(
                id=measured.job_id,
                kind="job",
                name=job.name if job else None,
                exists=job is not None,
                state=job.state.value if job else None,
                recipe=job.recipe if job else None,
            )
        if measured.model_id is not None and measured.model_id not in self.nodes:
            name = model_names.get(measured.model_id)
            self.nodes[measured.model_id] = DataLineageNode(
                id=measured.model_id, kind="model", name=name, exists=name is not None
            )
        if source := measured.job_id or measured.model_id:
            self._link(source, measured.id, "measured")

    def _list_ids(self, kind: str) -> list[str]:
        return [node.id for node in self.nodes.values() if node.kind == kind]

    def _add_task(self, task: DataTask) -> None:
        pipeline = task.request.get("pipeline") or {}
        self.nodes[task.id] = DataLineageNode(
            id=task.id, kind="task", name=task.kind, state=task.state, recipe=pipeline.get("name")
        )
        if task.kind == DataTaskKind.IMPORT:
            self._add_source(task)
        if task.version_id is not None:
            self._add_input(task.dataset_id, task.version_id, task.id)
        for resource in (task.request.get("resources") or {}).values():
            self._add_input(resource["dataset_id"], resource["version"], task.id)
        if task.made_version_id is not None:
            made_in = task.made_dataset_id or task.dataset_id
            self._add_foreign(made_in, task.made_version_id)
            # A run that changed nothing leaves the version that was there.
            if task.made_version_id != task.version_id:
                self._link(task.id, task.made_version_id, "made")

    def _add_source(self, task: DataTask) -> None:
        """Add the source of an import; the dataset itself keeps the file name of its first one."""
        source = dict(task.request.get("source") or {})
        if task.id == self._dataset.task_id:
            source |= self._dataset.source
        self._add_source_node(f"source:{task.id}", source)
        self._link(f"source:{task.id}", task.id, "imported")

    def _add_forgotten_source(self, known: set[str | None]) -> None:
        """Add the source of the first version, if the task that read it was deleted."""
        first = next((row for row in self._versions if row.number == 1 and row.task_id not in known), None)
        if first is not None and self._dataset.source:
            self._add_source_node("source:first", self._dataset.source)
            self._link("source:first", first.id, "imported")

    def _add_source_node(self, node_id: str, source: dict[str, Any]) -> None:
        name = next((source[key] for key in ("name", "path", "repo_id", "url") if source.get(key)), None)
        self.nodes[node_id] = DataLineageNode(
            id=node_id, kind="source", name=name or source.get("upload"), recipe=source.get("kind")
        )

    def _add_input(self, dataset_id: str, version_id: str, task_id: str) -> None:
        self._add_foreign(dataset_id, version_id)
        self._link(version_id, task_id, "input")

    def _add_foreign(self, dataset_id: str, version_id: str) -> None:
        """Add a version of another dataset, with as much as still exists of it."""
        if version_id in self.nodes or dataset_id == self._dataset.id:
            return
        dataset = repository.find_dataset(self._session, dataset_id=dataset_id)
        row = version_repository.find_version(self._session, dataset_id=dataset_id, version_id=version_id)
        self._add_version(dataset, version_id, row, dataset_id)

    def _add_version(
        self, dataset: Dataset | None, version_id: str, row: DatasetVersion | None, dataset_id: str = ""
    ) -> None:
        self.nodes[version_id] = DataLineageNode(
            id=version_id,
            kind="version",
            name=dataset.name if dataset else None,
            exists=row is not None,
            dataset=dataset.id if dataset else dataset_id,
            number=row.number if row else None,
            row_count=row.row_count if row else None,
        )

    def _add_job(self, job: Job) -> None:
        self.nodes[job.id] = DataLineageNode(
            id=job.id, kind="job", name=job.name, state=job.state.value, recipe=job.recipe
        )
        for dataset_id, version_id, role in (
            (job.dataset_id, job.dataset_version, "data"),
            (job.validation_dataset_id, job.validation_version, "validation"),
        ):
            if dataset_id == self._dataset.id:
                # Before there were versions a dataset was what is its first one now.
                self._link(version_id or self._first_version(), job.id, role)

    def _first_version(self) -> str:
        return next((row.id for row in self._versions if row.number == 1), "")

    def _link(self, source: str, target: str, role: Any) -> None:
        self.edges[source, target, role] = DataLineageEdge(source=source, target=target, role=role)

    def _cut(self, rows: Sequence[Any], most: int) -> Sequence[Any]:
        self.is_cut = self.is_cut or len(rows) > most
        return rows[:most]
