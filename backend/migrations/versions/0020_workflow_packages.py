"""Let workflows be packages: several files, and requirements that a worker installs."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0020_workflow_packages"
down_revision = "0019_sweeps"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
COLUMNS = ("touched_at", "installed", "reason", "state", "requirements", "files")


def upgrade() -> None:
    """Add the columns; single files are ready as they are."""
    op.add_column("workflow_files", sa.Column("files", JSON, nullable=True))
    op.add_column("workflow_files", sa.Column("requirements", JSON, nullable=True))
    op.add_column("workflow_files", sa.Column("state", sa.String(16), nullable=False, server_default="ready"))
    op.add_column("workflow_files", sa.Column("reason", sa.String(2000), nullable=True))
    op.add_column("workflow_files", sa.Column("installed", JSON, nullable=True))
    op.add_column("workflow_files", sa.Column("touched_at", INSTANT, nullable=True))


def downgrade() -> None:
    """Drop them; packages lose their further files."""
    for column in COLUMNS:
        op.drop_column("workflow_files", column)
