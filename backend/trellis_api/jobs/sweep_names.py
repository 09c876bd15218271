"""Names of the sweeps that jobs belong to, which the domain of sweeps provides."""

from collections.abc import Iterable
from typing import Any

from sqlalchemy import ColumnElement
from sqlalchemy.orm import Mapped
from sqlmodel import Session

from trellis_api.core.provided import Provided

#: By id, the names of those sweeps that exist.
MAP_SWEEP_NAMES: Provided[[Session, Iterable[str]], dict[str, str]] = Provided("names of sweeps")
#: The ID of the sweep that a filter gives by ID or name; None without a filter.
FIND_SWEEP_ID: Provided[[Session, str | None], str | None] = Provided("IDs of sweeps by name")
#: By what the sweep of an id stands in sorted lists.
EXPRESS_SWEEP: Provided[[Mapped[str | None]], ColumnElement[Any]] = Provided("names of sweeps to sort by")
