"""Looks up the ID of what a request calls by its name.

IDs win over names, and a name as it is written over one that differs in capitals. What is no name of anything
stays as it is: who uses it says that it doesn't exist.
"""

from dataclasses import dataclass
from typing import Any

from sqlmodel import Session, SQLModel, func, or_, select

from trellis_api.core.ids import is_id
from trellis_api.core.texts import storable
from trellis_api.datasets.models import Dataset
from trellis_api.environments.models import Environment
from trellis_api.models.models import Model
from trellis_api.names.errors import AmbiguousName
from trellis_api.workflows.models import WorkflowFile

#: Names that an error lists.
_MAX_CANDIDATES = 10


@dataclass(frozen=True)
class Kind:
    """A table of things with names."""

    table: type[SQLModel]
    prefix: str
    #: In messages, in the plural.
    noun: str


MODELS = Kind(Model, "mdl", "models")
DATASETS = Kind(Dataset, "ds", "datasets")
ENVIRONMENTS = Kind(Environment, "env", "environments")
WORKFLOWS = Kind(WorkflowFile, "wfl", "agent code files")
#: Parameters of recipes that name something.
PARAMETERS = {"environment": ENVIRONMENTS, "workflow": WORKFLOWS}


def find_id(session: Session, kind: Kind, called: str, *, field: str) -> str:
    """Return the ID of what is called so; raises ``AmbiguousName`` with the field if several are."""
    # A database is not asked for what it cannot hold.
    if is_id(called, prefix=kind.prefix) or storable(called) != called:
        return called
    table: Any = kind.table
    query = select(table.id, table.name).where(
        or_(table.name == called, func.lower(table.name) == called.lower())
    )
    found = session.exec(query.order_by(table.name != called, table.name).limit(_MAX_CANDIDATES)).all()
    exact = [each for each in found if each[1] == called]
    if len(exact or found) > 1:
        candidates = ", ".join(f"'{name}' ({each})" for each, name in exact or found)
        named = f"are named '{called}'" if exact else f"have the name '{called}' in other capitals"
        message = f"Several {kind.noun} {named}: {candidates}. Use an ID."
        raise AmbiguousName(message, [{"code": AmbiguousName.code, "field": field, "message": message}])
    return next((each for each, _ in exact or found), called)


def find_filter_id(session: Session, kind: Kind, called: str | None, *, field: str) -> str | None:
    """Return the ID of what a list is filtered by, given by ID or name; None without a filter."""
    return None if called is None else find_id(session, kind, called, field=field)


def with_parameter_ids(session: Session, params: dict[str, Any], *, field: str) -> dict[str, Any]:
    """Return the parameters of a recipe with the IDs of environment and agent code."""
    found = {
        name: find_id(session, kind, value, field=f"{field}.{name}")
        for name, kind in PARAMETERS.items()
        if isinstance(value := params.get(name), str)
    }
    return {**params, **found}
