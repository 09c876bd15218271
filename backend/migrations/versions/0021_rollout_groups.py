"""Keep the sampled responses to a prompt at a step in numbers, so that many steps are read at once."""

import hashlib
import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0021_rollout_groups"
down_revision = "0020_workflow_packages"
branch_labels = None
depends_on = None

JSON = sa.JSON()
TABLE = "rollout_groups"
EXCERPT_CHARS = 160
ROWS_AT_ONCE = 500


def upgrade() -> None:
    """Create the table, and fill it from the responses that are kept."""
    op.create_table(
        TABLE,
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("split", sa.String(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("group", sa.String(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("prompt_key", sa.String(64), nullable=False),
        sa.Column("excerpt", sa.String(), nullable=False),
        sa.Column("messages", JSON, nullable=True),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("scored", sa.Integer(), nullable=False),
        sa.Column("mean", sa.Float(), nullable=True),
        sa.Column("lowest", sa.Float(), nullable=True),
        sa.Column("highest", sa.Float(), nullable=True),
        sa.Column("correct", sa.Integer(), nullable=True),
        sa.Column("is_uniform", sa.Boolean(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.ForeignKeyConstraint(["job_id"], ["jobs.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("job_id", "split", "step", "group"),
    )
    op.create_index("ix_rollout_groups_prompt", TABLE, ["job_id", "split", "prompt_key", "step"])
    _fill()


def downgrade() -> None:
    """Drop the table; the responses stay."""
    op.drop_table(TABLE)


def _fill() -> None:
    connection = op.get_bind()
    target = sa.table(TABLE, *(sa.column(name) for name in _COLUMNS))
    waiting: list[dict[str, Any]] = []
    for row in _summarise(connection):
        waiting.append(row)
        if len(waiting) == ROWS_AT_ONCE:
            connection.execute(target.insert(), waiting)
            waiting = []
    if waiting:
        connection.execute(target.insert(), waiting)


_PLACE = ("job_id", "split", "step", "group")
_COLUMNS = (
    *_PLACE,
    "attempt",
    "prompt_key",
    "excerpt",
    "count",
    "scored",
    "mean",
    "lowest",
    "highest",
    "correct",
    "is_uniform",
    "tokens",
)


def _summarise(connection: sa.Connection) -> Iterator[dict[str, Any]]:
    names = (*_PLACE, "id", "attempt", "prompt", "score", "response_tokens", "reward_parts")
    source = sa.table("rollouts", *(sa.column(name) for name in names))
    query = sa.select(*(source.c[name] for name in names)).order_by(*(source.c[name] for name in names[:5]))
    # All of one step are in one place; a page of them is held at a time.
    rows = connection.execute(query, execution_options={"yield_per": ROWS_AT_ONCE})
    for place, members in groupby(rows, key=lambda row: tuple(row[:4])):
        found = list(members)
        scores = [row.score for row in found if row.score is not None]
        right = [_read_right(row.reward_parts) for row in found]
        yield {
            **dict(zip(_PLACE, place, strict=True)),
            "attempt": max(row.attempt for row in found),
            "prompt_key": hashlib.sha256(found[0].prompt.encode()).hexdigest()[:16],
            "excerpt": found[0].prompt[:EXCERPT_CHARS],
            "count": len(found),
            "scored": len(scores),
            "mean": sum(scores) / len(scores) if scores else None,
            "lowest": min(scores, default=None),
            "highest": max(scores, default=None),
            "correct": None if None in right else sum(each is True for each in right),
            "is_uniform": len(found) > 1 and len(scores) == len(found) and len(set(scores)) == 1,
            "tokens": sum(row.response_tokens for row in found),
        }


def _read_right(parts: Any) -> bool | None:
    values = json.loads(parts) if isinstance(parts, str) else parts or {}
    accuracy = values.get("acc")
    return None if accuracy is None else accuracy >= 1.0
