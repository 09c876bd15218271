"""Environments and calls as clients see them."""

from collections.abc import Sequence
from typing import Literal

from sqlmodel import Session
from trellis_contracts.agents import EnvironmentManifest
from trellis_contracts.environments import CallAnswer, EnvironmentState, ToolCallState

from trellis_api.core.references import NamedReference
from trellis_api.datasets.models import Dataset
from trellis_api.datasets.repository import find_dataset
from trellis_api.environments import uses
from trellis_api.environments.models import Environment, EnvironmentCall
from trellis_api.environments.schemas import EnvironmentDataset, EnvironmentRead, ToolCallRead


def present(session: Session, environment: Environment) -> EnvironmentRead:
    """Present one environment."""
    return present_all(session, [environment])[0]


def present_all(session: Session, found: Sequence[Environment]) -> list[EnvironmentRead]:
    """Present several environments in their order."""
    users = uses.map_uses(session, environment_ids=[each.id for each in found])
    return [_describe(session, each, users=users[each.id]) for each in found]


def present_call(call: EnvironmentCall) -> ToolCallRead:
    """Present a tool call as clients see it."""
    answer = CallAnswer.model_validate(call.answer) if call.answer is not None else None
    return ToolCallRead(
        id=call.id,
        environment=call.environment_id,
        tool=call.tool,
        arguments=call.arguments,
        state=ToolCallState(call.state),
        result=answer.result if answer else None,
        result_count=answer.result_count if answer else None,
        error=answer.error if answer else None,
        ends_episode=answer.ends_episode if answer else False,
        duration_s=answer.duration_s if answer else None,
        reason=call.reason,
        cause=call.cause,
        created_at=call.created_at,
        finished_at=call.finished_at,
    )


def _describe(session: Session, environment: Environment, *, users: list[str]) -> EnvironmentRead:
    state = EnvironmentState(environment.state)
    manifest = (
        EnvironmentManifest.model_validate(environment.manifest) if environment.manifest is not None else None
    )
    return EnvironmentRead(
        id=environment.id,
        name=environment.name,
        kind=environment.kind,
        parameters=environment.parameters,
        state=state,
        phase=_phase(environment),
        reason=environment.reason,
        cause=environment.cause,
        attempt=environment.attempt,
        counts=manifest.counts if manifest else {},
        tools=manifest.tools if manifest else [],
        datasets=[
            _describe_dataset(name, dataset_id, find_dataset(session, dataset_id=dataset_id))
            for name, dataset_id in environment.dataset_ids.items()
        ],
        sha256=environment.sha256,
        size_bytes=environment.size_bytes,
        used_by=users,
        can_call=state is EnvironmentState.READY,
        can_retry=state is EnvironmentState.FAILED,
        can_delete=not users,
        created_at=environment.created_at,
        started_at=environment.started_at,
        finished_at=environment.finished_at,
    )


def _phase(environment: Environment) -> Literal["files", "rows"] | None:
    if environment.state != EnvironmentState.MAKING:
        return None
    return "files" if environment.sha256 is None else "rows"


def _describe_dataset(name: str, dataset_id: str, row: Dataset | None) -> EnvironmentDataset:
    return EnvironmentDataset(
        name=name,
        dataset=NamedReference(id=dataset_id, name=row.name if row else None),
        splits=row.splits if row else {},
    )
