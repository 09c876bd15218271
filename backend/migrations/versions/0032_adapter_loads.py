"""Give each request to load an adapter an identity, and note why one was refused or unloaded."""

import sqlalchemy as sa
from alembic import op

revision = "0032_adapter_loads"
down_revision = "0031_queue_order"
branch_labels = None
depends_on = None

_COLUMNS: tuple[tuple[str, sa.types.TypeEngine[object]], ...] = (
    ("load_id", sa.String(32)),
    ("asked_at", sa.DateTime(timezone=True)),
    ("refusal", sa.String(500)),
    ("unloaded_at", sa.DateTime(timezone=True)),
    ("unloaded_for", sa.String(16)),
    ("tool_problem", sa.String(32)),
)


def upgrade() -> None:
    """Add the columns. Adapters that are loaded now count as stopped: their requests have no identity."""
    for name, kind in _COLUMNS:
        op.add_column("endpoints", sa.Column(name, kind, nullable=True))
    op.execute("UPDATE endpoints SET asked_attempt = NULL WHERE engine_id IS NOT NULL")


def downgrade() -> None:
    """Drop them."""
    for name, _ in reversed(_COLUMNS):
        op.drop_column("endpoints", name)
