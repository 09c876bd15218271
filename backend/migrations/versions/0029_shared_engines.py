"""Let endpoints of adapters share the engine of their base model."""

import sqlalchemy as sa
from alembic import op

revision = "0029_shared_engines"
down_revision = "0028_step_times"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the columns; several endpoints may now be carried out by one job."""
    op.add_column("endpoints", sa.Column("engine_id", sa.String(32), nullable=True))
    op.add_column("endpoints", sa.Column("asked_attempt", sa.Integer(), nullable=True))
    op.add_column("endpoints", sa.Column("max_lora_rank", sa.Integer(), nullable=True))
    op.drop_index("ix_endpoints_job_id", "endpoints")
    op.create_index("ix_endpoints_job_id", "endpoints", ["job_id"])
    op.create_index("ix_endpoints_engine_id", "endpoints", ["engine_id"])


def downgrade() -> None:
    """Drop them. Endpoints that share an engine go; they are written anew when they are next started."""
    op.execute("DELETE FROM endpoints WHERE engine_id IS NOT NULL")
    op.drop_index("ix_endpoints_engine_id", "endpoints")
    op.drop_index("ix_endpoints_job_id", "endpoints")
    op.create_index("ix_endpoints_job_id", "endpoints", ["job_id"], unique=True)
    op.drop_column("endpoints", "max_lora_rank")
    op.drop_column("endpoints", "asked_attempt")
    op.drop_column("endpoints", "engine_id")
