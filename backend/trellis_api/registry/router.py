"""``/registry``: versions of named models, aliases, gated promotions, history and rollback."""

from typing import Annotated, Any

from fastapi import APIRouter, Path

from trellis_api.core.dependencies import DatabaseDep, ReadSession, SettingsDep, WriteSession
from trellis_api.core.errors import ERROR_RESPONSES
from trellis_api.names.resolve import MODELS, find_id
from trellis_api.registry import gate, repository, service
from trellis_api.registry.schemas import (
    ALIAS_PATTERN,
    NAME_PATTERN,
    AliasRollBack,
    NamedModelList,
    NamedModelRead,
    PromotionCreate,
    PromotionHistory,
    PromotionRead,
    VersionCreate,
)

CONFLICT: dict[int | str, dict[str, Any]] = {404: ERROR_RESPONSES[404], 409: ERROR_RESPONSES[409]}
router = APIRouter(prefix="/registry", tags=["registry"], responses=ERROR_RESPONSES)
RegistryName = Annotated[
    str, Path(max_length=64, pattern=NAME_PATTERN, description="Name of the registered model.")
]
Alias = Annotated[
    str, Path(max_length=64, pattern=ALIAS_PATTERN, description="Alias, e.g. production or candidate.")
]


@router.get("", summary="List named models")
def list_named_models(session: ReadSession) -> NamedModelList:
    """List named models with their versions and aliases."""
    return NamedModelList(items=[service.present(session, row) for row in repository.list_names(session)])


@router.post("", status_code=201, summary="Add a version", responses=CONFLICT)
def add_version(body: VersionCreate, session: WriteSession) -> NamedModelRead:
    """Add a model as the next version of a name; the first version creates the name."""
    model = find_id(session, MODELS, body.model, field="model")
    named = service.add_version(session, request=body.model_copy(update={"model": model}))
    return service.present(session, named)


@router.get("/{registry_name}", summary="Get a named model")
def read_named_model(registry_name: RegistryName, session: ReadSession) -> NamedModelRead:
    """Get its versions, newest first, and aliases."""
    return service.present(session, service.get_named(session, name=registry_name))


@router.delete("/{registry_name}", status_code=204, summary="Delete a named model")
def delete_named_model(registry_name: RegistryName, session: WriteSession) -> None:
    """Delete it with its versions and history; the models are kept."""
    service.delete(session, name=registry_name)


@router.put("/{registry_name}/aliases/{alias}", summary="Promote a version", responses=CONFLICT)
def promote_version(
    registry_name: RegistryName,
    alias: Alias,
    body: PromotionCreate,
    database: DatabaseDep,
    settings: SettingsDep,
) -> NamedModelRead:
    """Point the alias at this version. With a gate: only if it is not worse than the current one."""
    look = None
    with database.read() as session:
        service.get_version(session, name=registry_name, number=body.version)
        current = service.find_current(session, name=registry_name, alias=alias)
        if body.gate is not None:
            look = gate.find_evaluations(
                session, gate=body.gate, name=registry_name, current=current, wanted=body.version
            )
    result = gate.judge(settings, look) if look else None
    with database.write() as session:
        named = service.promote(
            session, name=registry_name, alias=alias, request=body, expected=current, gate=result
        )
        return service.present(session, named)


@router.post("/{registry_name}/aliases/{alias}/rollback", summary="Roll an alias back", responses=CONFLICT)
def roll_back_alias(
    registry_name: RegistryName, alias: Alias, session: WriteSession, body: AliasRollBack | None = None
) -> NamedModelRead:
    """Move it back to its previous version."""
    note = (body or AliasRollBack()).note
    return service.present(session, service.roll_back(session, name=registry_name, alias=alias, note=note))


@router.get("/{registry_name}/history", summary="List promotions and rollbacks")
def read_registry_history(registry_name: RegistryName, session: ReadSession) -> PromotionHistory:
    """List alias changes with notes and gate results, newest first."""
    service.get_named(session, name=registry_name)
    steps = repository.list_promotions(session, name=registry_name)
    return PromotionHistory(items=[PromotionRead.model_validate(step) for step in steps])
