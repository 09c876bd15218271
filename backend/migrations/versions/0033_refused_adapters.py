"""Note when an adapter was refused, by which run of an engine, and what it and its limits were then."""

import sqlalchemy as sa
from alembic import op

revision = "0033_refused_adapters"
down_revision = "0032_adapter_loads"
branch_labels = None
depends_on = None

_COLUMNS: tuple[tuple[str, sa.types.TypeEngine[object]], ...] = (
    ("asked_with", sa.String(64)),
    ("refused_at", sa.DateTime(timezone=True)),
    ("refused_by", sa.String(64)),
)


def upgrade() -> None:
    """Add the columns. What was refused before has no time and is tried again at the next start."""
    for name, kind in _COLUMNS:
        op.add_column("endpoints", sa.Column(name, kind, nullable=True))


def downgrade() -> None:
    """Drop them."""
    for name, _ in reversed(_COLUMNS):
        op.drop_column("endpoints", name)
