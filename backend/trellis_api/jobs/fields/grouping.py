"""Jobs of a list in groups, such as those of a dataset: by what they are grouped, and how many each has.

The key of a group is a text that no two groups share: the name puts them in order, the ID tells apart those
of one name. What was deleted has no name, and stands first. A job with several tags is in the group of its
first.
"""

from collections.abc import Sequence
from enum import StrEnum
from typing import Any

from sqlalchemy import ColumnElement, Select, String, case, cast, func, literal, or_, select
from sqlmodel import Session, col
from trellis_contracts.states import JobState

from trellis_api.datasets.models import Dataset
from trellis_api.jobs.models import Job, JobTag
from trellis_api.jobs.sweep_names import EXPRESS_SWEEP
from trellis_api.models.models import Model


class JobGrouping(StrEnum):
    """What jobs are grouped by."""

    RECIPE = "recipe"
    MODEL = "model"
    DATASET = "dataset"
    SWEEP = "sweep"
    GROUP = "group"
    TAGS = "tags"
    STATE = "state"


#: Sorts before every letter, so that a name stands before longer ones that begin with it.
_SEPARATOR = "\x1f"
_LIFE = {state: f"{place:02}" for place, state in enumerate(JobState)}


def express_group(grouping: JobGrouping, *, dialect: str) -> ColumnElement[Any]:
    """Build the SQL expression of the key of a job's group; NULL for a job that is in none."""
    match grouping:
        case JobGrouping.RECIPE:
            return cast(col(Job.recipe), String)
        case JobGrouping.MODEL:
            name: Any = select(func.lower(Model.name)).where(col(Model.id) == Job.model_id).scalar_subquery()
            return _join(func.coalesce(name, ""), col(Job.model_id))
        case JobGrouping.DATASET:
            name = select(func.lower(Dataset.name)).where(col(Dataset.id) == Job.dataset_id).scalar_subquery()
            return _join(func.coalesce(name, ""), col(Job.dataset_id))
        case JobGrouping.SWEEP:
            return _join(func.coalesce(EXPRESS_SWEEP(col(Job.sweep_id)), ""), col(Job.sweep_id))
        case JobGrouping.GROUP:
            return _join(func.lower(Job.group), col(Job.group))
        case JobGrouping.TAGS:
            # Byte by byte on every database, as SQLite and `first_tag` compare.
            tag: Any = col(JobTag.tag) if dialect == "sqlite" else col(JobTag.tag).collate("C")
            return select(func.min(tag)).where(col(JobTag.job_id) == Job.id).scalar_subquery()
        case JobGrouping.STATE:
            return case(*((col(Job.state) == state, place) for state, place in _LIFE.items()))


def _join(name: Any, identifier: Any) -> ColumnElement[Any]:
    key: ColumnElement[Any] = name + literal(_SEPARATOR) + identifier
    return key


def read_value(grouping: JobGrouping, key: str | None) -> str | None:
    """Return what a key stands for: an ID, a word, or a state."""
    if key is None or grouping in (JobGrouping.RECIPE, JobGrouping.TAGS):
        return key
    if grouping is JobGrouping.STATE:
        return next((str(state) for state, place in _LIFE.items() if place == key), None)
    return key.rpartition(_SEPARATOR)[2]


def count_groups(
    session: Session, statement: Select[Any], *, grouping: JobGrouping, keys: Sequence[str | None]
) -> dict[str | None, int]:
    """Count the jobs of these groups among all that a statement selects."""
    if not keys:
        return {}
    key = express_group(grouping, dialect=session.connection().dialect.name)
    named = [each for each in keys if each is not None]
    is_wanted = or_(key.in_(named), key.is_(None)) if None in keys else key.in_(named)
    found = statement.where(is_wanted).with_only_columns(key.label("group_key"), col(Job.id)).subquery()
    counted = select(found.c.group_key, func.count()).group_by(found.c.group_key)
    return {row[0]: row[1] for row in session.execute(counted)}
