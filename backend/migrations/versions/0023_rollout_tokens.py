"""Keep what was measured of the tokens of a few sampled responses."""

import sqlalchemy as sa
from alembic import op

revision = "0023_rollout_tokens"
down_revision = "0022_alarm_examples"
branch_labels = None
depends_on = None

TABLE = "rollout_tokens"


def upgrade() -> None:
    """Create the table."""
    op.create_table(
        TABLE,
        sa.Column(
            "rollout_id",
            sa.BigInteger().with_variant(sa.Integer(), "sqlite"),
            autoincrement=False,
            nullable=False,
        ),
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("split", sa.String(), nullable=False),
        sa.Column("step", sa.BigInteger(), nullable=False),
        sa.Column("trace", sa.JSON(), nullable=False),
        sa.ForeignKeyConstraint(["rollout_id"], ["rollouts.id"], ondelete="CASCADE"),
        sa.PrimaryKeyConstraint("rollout_id"),
    )
    op.create_index("ix_rollout_tokens_step", TABLE, ["job_id", "split", "step"])


def downgrade() -> None:
    """Drop it; the responses stay."""
    op.drop_table(TABLE)
