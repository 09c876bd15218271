"""Index what models descend from; record folders to remove, failed logins and probes of the sandbox."""

import sqlalchemy as sa
from alembic import op

revision = "0008_lineage_and_records"
down_revision = "0007_job_data_columns"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
ROW_ID = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def upgrade() -> None:
    """Add columns and tables, and fill the columns from the JSON that they repeat."""
    op.add_column("models", sa.Column("parent_model_id", sa.String(32), nullable=True))
    op.add_column("models", sa.Column("source_job_id", sa.String(32), nullable=True))
    op.add_column("models", sa.Column("source_step", sa.BigInteger(), nullable=True))
    _fill_lineage()
    op.create_index("ix_models_parent", "models", ["parent_model_id", "created_at"])
    op.create_index("ix_models_source", "models", ["source_job_id", "source_step"])
    op.create_table(
        "export_leftovers",
        sa.Column("job_id", sa.String(), nullable=False),
        sa.Column("model_id", sa.String(32), nullable=False),
        sa.Column("requested_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("job_id"),
    )
    op.create_table(
        "login_failures",
        sa.Column("id", ROW_ID, nullable=False),
        sa.Column("address", sa.String(64), nullable=False),
        sa.Column("failed_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_login_failures_address", "login_failures", ["address", "failed_at"])
    op.create_index("ix_login_failures_failed_at", "login_failures", ["failed_at"])
    op.create_table(
        "sandbox_probes",
        sa.Column("hostname", sa.String(255), nullable=False),
        sa.Column("problem", sa.String(500), nullable=True),
        sa.Column("probed_at", INSTANT, nullable=False),
        sa.PrimaryKeyConstraint("hostname"),
    )


def downgrade() -> None:
    """Drop them."""
    op.drop_table("sandbox_probes")
    op.drop_table("login_failures")
    op.drop_table("export_leftovers")
    op.drop_index("ix_models_source", "models")
    op.drop_index("ix_models_parent", "models")
    for column in ("source_step", "source_job_id", "parent_model_id"):
        op.drop_column("models", column)


def _fill_lineage() -> None:
    statement = (
        "UPDATE models SET parent_model_id = json_extract(lineage, '$.model_id'), "
        "source_job_id = json_extract(lineage, '$.job_id'), "
        "source_step = json_extract(lineage, '$.step')"
    )
    if op.get_bind().dialect.name == "postgresql":
        statement = (
            "UPDATE models SET parent_model_id = lineage ->> 'model_id', "
            "source_job_id = lineage ->> 'job_id', source_step = (lineage ->> 'step')::bigint"
        )
    op.execute(statement)
