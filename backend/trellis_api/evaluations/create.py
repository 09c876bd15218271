"""How an evaluation comes into being: everything is checked, then rows are written, QUEUED.

create                                        one evaluation and one job of kind ``evaluate`` for each target
→ trellis_workers/evaluations/install.py      brings benchmarks that are not here; the job waits for them
→ trellis_workers/jobs/launch.py              starts the job when there is room (``jobs/admission.py``)
→ trellis_train/engines/evaluate.py           generates and scores, and leaves ``result.json``
→ trellis_workers/evaluations/finish.py       records the scores and settles the job, in one transaction
"""

from typing import Any

from sqlmodel import Session
from trellis_contracts.evaluation import AnyOrder, EngineSettings

from trellis_api.benchmarks.service import install_if_absent
from trellis_api.core.ids import new_id
from trellis_api.core.ray_cluster import find_nodes
from trellis_api.core.settings import Settings
from trellis_api.datasets.repository import map_dataset_names
from trellis_api.evaluations import repository
from trellis_api.evaluations.checking import check_orders, names_to_install
from trellis_api.evaluations.errors import InvalidOrder
from trellis_api.evaluations.measured import list_dataset_ids
from trellis_api.evaluations.models import PERSON, Evaluation
from trellis_api.evaluations.orders import EvaluationRequest
from trellis_api.evaluations.schemas import EvaluationCreate, EvaluationPlan
from trellis_api.evaluations.targets import FoundTarget, find_targets, require_tried_template
from trellis_api.jobs import repository as jobs
from trellis_api.jobs import service
from trellis_api.jobs.errors import TooManyGpus
from trellis_api.jobs.models import EVALUATE, Job
from trellis_api.jobs.storage import check_storage

#: Stands in a job's row where a training has its recipe.
RECIPE = "evaluate"


def create(
    session: Session, settings: Settings, *, request: EvaluationCreate, trigger: str = PERSON
) -> list[Evaluation]:
    """Queue one evaluation for each target; everything that stands against any of them raises here."""
    check_storage(settings)
    targets, orders = check_plan(session, settings, plan=request)
    for name in names_to_install(orders):
        install_if_absent(session, name=name)
    return [
        _queue(session, settings, request=request, target=target, orders=orders, trigger=trigger)
        for target in targets
    ]


def check_plan(
    session: Session, settings: Settings, *, plan: EvaluationPlan
) -> tuple[list[FoundTarget], list[AnyOrder]]:
    """Return the targets and the orders with versions filled in; raises with everything that is wrong."""
    check_engine(settings, plan.engine)
    targets = find_targets(session, settings, plan.targets)
    for index, target in enumerate(targets):
        require_tried_template(settings, target, field=f"targets.{index}")
    orders = check_orders(session, settings, plan.benchmarks)
    issues = [issue for target in targets for issue in _compare(target, orders, plan.engine)]
    if issues:
        raise InvalidOrder(issues[0]["message"], issues)
    return targets, orders


def check_engine(settings: Settings, engine: EngineSettings) -> None:
    """Refuse more copies of a slot than the platform has: the job would wait for ever."""
    limit = settings.total_slots if settings.resolved_platform == "cuda" else 1
    nodes = find_nodes(settings)
    if nodes is not None:  # one engine in one process tree: its GPUs are on one node
        limit = min(limit, max((node.gpus for node in nodes), default=0))
    if engine.tensor_parallel > limit:
        message = f"The model can't be sharded across {engine.tensor_parallel} GPUs; a machine has {limit}."
        issue = {"code": TooManyGpus.code, "field": "engine.tensor_parallel", "message": message}
        raise TooManyGpus(message, [issue])


def _compare(target: FoundTarget, orders: list[AnyOrder], engine: EngineSettings) -> list[dict[str, Any]]:
    """List what the orders need that the target lacks: a chat template, a long enough context window."""
    issues, model = [], target.model
    window = model.context_length if model else None
    if window is not None and engine.max_model_len is not None and engine.max_model_len > window:
        message = f"{target.name} supports at most {window} tokens, not {engine.max_model_len}."
        issues.append({"code": "window_too_short", "field": "engine.max_model_len", "message": message})
    longest = engine.max_model_len or window
    for index, order in enumerate(orders):
        field, tokens = f"benchmarks.{index}", order.decoding.max_tokens
        needs_chat = order.chat == "always" or order.system is not None
        if needs_chat and target.has_chat_template is False:
            message = f"{target.name} has no chat template. Set 'chat' to auto or never, and remove 'system'."
            issues.append({"code": "chat_template_missing", "field": f"{field}.chat", "message": message})
        if longest is not None and tokens is not None and tokens >= longest:
            message = f"Answers of {tokens} tokens leave no room for the prompt within {longest} tokens."
            field = f"{field}.decoding.max_tokens"
            issues.append({"code": "window_too_short", "field": field, "message": message})
    return issues


def _queue(
    session: Session,
    settings: Settings,
    *,
    request: EvaluationCreate,
    target: FoundTarget,
    orders: list[AnyOrder],
    trigger: str,
) -> Evaluation:
    evaluation_id, name = new_id("ev"), request.name or _name(target, orders)
    job = Job(
        id=new_id("job"),
        name=name,
        kind=EVALUATE,
        recipe=RECIPE,
        model_id=target.model_id,
        seed=request.seed,
        gpus=slots_for(settings, request.engine),
        priority=request.priority,
        evaluation_id=evaluation_id,
    )
    jobs.add_job(session, job=job, tags=[])
    row = Evaluation(
        id=evaluation_id,
        job_id=job.id,
        name=name,
        trigger=trigger,
        target_kind=target.kind,
        target_model_id=None if target.job_id else target.model_id,
        target_job_id=target.job_id,
        target_step=target.step,
        target_name=target.name,
        request=EvaluationRequest(benchmarks=orders, engine=request.engine, seed=request.seed).model_dump(
            mode="json"
        ),
        benchmark_names=list(dict.fromkeys(order.benchmark for order in orders)),
        dataset_names=map_dataset_names(session, dataset_ids=list_dataset_ids(orders)),
    )
    repository.add_evaluation(session, row)
    service.announce(session, job=job)
    session.flush()
    return row


def slots_for(settings: Settings, engine: EngineSettings) -> int:
    """Return the slots that an evaluation takes: none on a CPU, where it runs at low priority."""
    return engine.tensor_parallel if settings.resolved_platform == "cuda" else 0


def _name(target: FoundTarget, orders: list[AnyOrder]) -> str:
    return f"{target.name}: {', '.join(str(order.label) for order in orders)}"[:200]
