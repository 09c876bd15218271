"""Whether a pipeline can be read, kept, and run on the rows of a version."""

import json
from typing import Any

from pydantic import ValidationError
from sqlmodel import Session
from trellis_contracts.data_tasks import Needs
from trellis_contracts.pipeline import Pipeline
from trellis_data.operator import Context
from trellis_data.pipeline.check import Problem, check, check_steps, stated_layout
from trellis_data.pipeline.document import dump_pipeline, load_pipeline, pipeline_hash
from trellis_data.pipeline.problem import PipelineProblem

from trellis_api.core.errors import DomainError
from trellis_api.core.settings import Settings
from trellis_api.datasets import versions
from trellis_api.datasets.models import DatasetVersion
from trellis_api.datasets.service import get_dataset
from trellis_api.datasets.store import open_store
from trellis_api.models.errors import ModelNotReady
from trellis_api.pipelines.errors import JudgeUnknown, PipelineInvalid, PipelineMissing
from trellis_api.pipelines.needs import find_judge, find_model_folder, find_needs, judges_of, outline
from trellis_api.pipelines.schemas import PipelineCheck, PipelineChecked, PipelineProblemRead

#: A document is kept as JSON by both databases: nothing deeper, and no number longer, than both take.
_MAX_DEPTH = 40
_MAX_NUMBER = 2**63
_MAX_CHARACTERS = 1_000_000


def validate(session: Session, settings: Settings, *, request: PipelineCheck) -> PipelineChecked:
    """Find everything that is wrong with a pipeline, and with what it names."""
    pipeline, problems = _read(request)
    if pipeline is None:
        return PipelineChecked(problems=problems, pipeline=None, yaml=None, hash=None)
    needs, problems = _look_for_needs(session, settings, pipeline, request)
    if request.dataset is None:
        problems += [_show(each) for each in check_steps(pipeline, outline(needs))]
    else:
        dataset = get_dataset(session, dataset_id=request.dataset)
        version = versions.resolve(session, dataset_id=dataset.id, revision=request.version)
        problems += [_show(each) for each in find_problems(settings, pipeline, version, outline(needs))]
    return PipelineChecked(
        problems=problems, pipeline=pipeline, yaml=dump_pipeline(pipeline), hash=pipeline_hash(pipeline)
    )


def find_problems(
    settings: Settings, pipeline: Pipeline, version: DatasetVersion, context: Context
) -> list[Problem]:
    """List the problems that keep a pipeline from running on the rows of a version."""
    tree = open_store(settings).tree(version.tree)
    layout = stated_layout(pipeline, tree.arrow_schema) or tree.layout
    return check(pipeline, tree.arrow_schema, layout, context)


def require_runnable(
    settings: Settings, *, pipeline: Pipeline, version: DatasetVersion, needs: Needs
) -> None:
    """Raise ``PipelineInvalid`` with every problem that a run on these rows would meet."""
    require_storable(pipeline)
    _refuse(find_problems(settings, pipeline, version, outline(needs)))


def require_keepable(pipeline: Pipeline) -> None:
    """Raise ``PipelineInvalid`` for one that runs on no rows at all; what it names is looked for later."""
    require_storable(pipeline)
    _refuse(check_steps(pipeline, Context()))


def require_storable(pipeline: Pipeline) -> None:
    """Raise ``PipelineInvalid`` for values that no database keeps."""
    document = pipeline.model_dump()
    reason = _find_unstorable(document, 0)
    if reason is None and len(json.dumps(document)) > _MAX_CHARACTERS:
        reason = f"it has more than {_MAX_CHARACTERS} characters"
    if reason:
        raise PipelineInvalid(f"The pipeline can't be saved: {reason}.", [])


def _read(request: PipelineCheck) -> tuple[Pipeline | None, list[PipelineProblemRead]]:
    if (request.pipeline is None) == (request.yaml is None):
        raise PipelineMissing("Provide the pipeline as either 'pipeline' or 'yaml'.")
    try:
        if request.yaml is not None:
            pipeline = load_pipeline(request.yaml)
        else:
            pipeline = Pipeline.model_validate(request.pipeline)
        require_storable(pipeline)
    except PipelineProblem as problem:
        return None, [_say("yaml", problem.code, line) for line in problem.message.splitlines()]
    except PipelineInvalid as error:
        return None, [_say("", error.code, error.message)]
    except ValidationError as error:
        return None, [
            _say(".".join(str(part) for part in each["loc"]), "pipeline_invalid", each["msg"])
            for each in error.errors(include_input=False, include_context=False)
        ]
    return pipeline, []


def _look_for_needs(
    session: Session, settings: Settings, pipeline: Pipeline, request: PipelineCheck
) -> tuple[Needs, list[PipelineProblemRead]]:
    """Look up what the pipeline needs by name; what is missing is returned as problems."""
    problems: list[PipelineProblemRead] = []
    tokenizer = None
    if pipeline.tokenizer:
        try:
            tokenizer = find_model_folder(session, settings, model_id=pipeline.tokenizer)
        except ModelNotReady as error:
            problems.append(_say("tokenizer", error.code, error.message))
    judges = {}
    for name in judges_of(pipeline):
        try:
            judges[name] = find_judge(settings, name)
        except JudgeUnknown:
            continue  # the step that asks it says so
    try:
        found = find_needs(session, settings, tokenizer=None, judges=(), resources=request.resources)
    except DomainError as error:
        problems.append(_say("resources", error.code, error.message))
        found = Needs()
    return found.model_copy(update={"tokenizer": tokenizer, "judges": judges}), problems


def _refuse(problems: list[Problem]) -> None:
    if problems:
        raise PipelineInvalid(
            f"{problems[0].field}: {problems[0].message}", [each.model_dump() for each in problems]
        )


def _find_unstorable(value: Any, depth: int) -> str | None:
    if depth > _MAX_DEPTH:
        return f"it is more than {_MAX_DEPTH} levels deep"
    if isinstance(value, dict):
        return next(
            (why for each in [*value, *value.values()] if (why := _find_unstorable(each, depth + 1))), None
        )
    if isinstance(value, list | tuple):
        return next((why for each in value if (why := _find_unstorable(each, depth + 1))), None)
    if isinstance(value, str):
        return None if _is_storable(value) else "it contains invalid characters"
    if isinstance(value, float) and value - value != 0:
        return "it contains non-finite numbers"
    if isinstance(value, int) and abs(value) >= _MAX_NUMBER:
        return "it contains numbers larger than 64 bits"
    return None


def _is_storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\x00" not in text


def _show(problem: Problem) -> PipelineProblemRead:
    return PipelineProblemRead(**problem.model_dump())


def _say(field: str, code: str, message: str) -> PipelineProblemRead:
    return PipelineProblemRead(step=None, field=field, code=code, message=message)
