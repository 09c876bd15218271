"""Decides about generations: who writes, from which rows, and where what was written goes."""

from sqlmodel import Session
from trellis_contracts.data_tasks import GenerateTask
from trellis_contracts.endpoints import ChatEndpoint
from trellis_contracts.generation import Generation, MatchCheck, RejectionSampling, ScorerCheck

from trellis_api.core.settings import Settings
from trellis_api.data_tasks import service as data_tasks
from trellis_api.data_tasks.schemas import DataTaskRead
from trellis_api.datasets import versions
from trellis_api.datasets.models import DatasetVersion
from trellis_api.datasets.store import open_store
from trellis_api.generations.errors import EndpointUnknown, ModelWithoutTemplate, SeedsUnfit, WriterMissing
from trellis_api.generations.schemas import GenerationCreate, GenerationEndpoint
from trellis_api.generations.slots import check_slots, slots_to_serve
from trellis_api.models.ready import require_ready
from trellis_api.pipelines.needs import find_judge
from trellis_api.pipelines.outputs import connect, hold_dataset, make_output

#: Stands for the server of a model of the platform, whose port is another one whenever it is started.
_PLATFORM = "http://platform/v1"
#: Of a model of the platform: it answers as fast as it can, and costs nothing.
_SERVED_PER_MINUTE = 600_000.0
_SERVED_TIMEOUT_S = 600.0


def list_endpoints(settings: Settings) -> list[GenerationEndpoint]:
    """List the endpoints that may be used, by name."""
    return [
        GenerationEndpoint(
            name=name,
            model=each.model,
            requests_per_minute=each.requests_per_minute,
            input_price=each.input_price,
            output_price=each.output_price,
        )
        for name, each in sorted(settings.judges.items())
    ]


def start(session: Session, settings: Settings, *, request: GenerationCreate) -> DataTaskRead:
    """Queue a generation; everything that is wrong with the request raises here."""
    source = hold_dataset(session, dataset_id=request.dataset)
    version = versions.resolve(session, dataset_id=source.id, revision=request.version)
    _require_reference(settings, request, version)
    endpoint = _find_writer(session, settings, request)
    slots = slots_to_serve(settings) if request.model else 0
    check_slots(session, settings, slots=slots)
    judges = _judges_of(settings, request)
    output, made = make_output(session, request.output, source=source, version=version, made_by="generation")
    task = GenerateTask(
        generation=Generation(
            name=request.name,
            endpoint=endpoint,
            max_cost=request.max_cost,
            concurrency=request.concurrency,
            seed=request.seed,
            sampling=request.sampling,
            system=request.system,
            method=request.method,
        ),
        model=request.model,
        slots=slots,
        split=versions.choose_split(version, request.split),
        judges=judges,
        max_judge_cost=request.max_judge_cost,
        output=output,
    )
    row = data_tasks.create(session, request=task, dataset_id=source.id, version_id=version.id)
    connect(session, made, row)
    return data_tasks.present(session, row)


def _find_writer(session: Session, settings: Settings, request: GenerationCreate) -> ChatEndpoint:
    """Return the endpoint of the request, or one for its model on this platform."""
    if (request.endpoint is None) == (request.model is None):
        raise WriterMissing("Provide either 'endpoint' or 'model'.")
    if request.model is not None:
        model = require_ready(session, model_id=request.model)
        if not model.has_chat_template:
            raise ModelWithoutTemplate(f"'{model.name}' has no chat template, so it can't be used here.")
        return ChatEndpoint(
            base_url=_PLATFORM,
            model=model.id,
            requests_per_minute=_SERVED_PER_MINUTE,
            timeout_s=_SERVED_TIMEOUT_S,
        )
    found = settings.judges.get(request.endpoint or "")
    if found is None:
        known = ", ".join(sorted(settings.judges)) or "none configured (TRELLIS_JUDGES)"
        raise EndpointUnknown(f"Unknown endpoint '{request.endpoint}'; available: {known}.")
    return ChatEndpoint(**found.model_dump())


def _judges_of(settings: Settings, request: GenerationCreate) -> list[str]:
    """Return the judge that answers are checked by, if there is one."""
    method = request.method
    if not isinstance(method, RejectionSampling) or not isinstance(method.check, ScorerCheck):
        return []
    find_judge(settings, method.check.name)
    return [method.check.name]


def _require_reference(settings: Settings, request: GenerationCreate, version: DatasetVersion) -> None:
    """Check that the column that answers are compared with exists."""
    method = request.method
    if not isinstance(method, RejectionSampling) or not isinstance(method.check, MatchCheck):
        return
    column, names = method.check.column, open_store(settings).tree(version.tree).arrow_schema.names
    if column is not None and column not in names:
        raise SeedsUnfit(f"No column '{column}' in the data; available: {', '.join(names)[:500]}.")
