"""Keep for every job, not only for fine-tuning jobs, how far its metrics were sent to Weights & Biases.

The settings in fine-tuning jobs used to be checked for little more than their length. They are read with the
stricter schema of all jobs from now on, so those that it refuses are made fit for it here.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from trellis_contracts.secrets import SECRET_SHAPES

revision = "0038_job_reports"
down_revision = "0037_shared_conversations"
branch_labels = None
depends_on = None

INSTANT = sa.DateTime(timezone=True)
_FINE_TUNING = sa.table(
    "fine_tuning_jobs",
    sa.column("id", sa.String),
    sa.column("job_id", sa.String),
    sa.column("request", sa.JSON),
    sa.column("reports_to", sa.String),
    sa.column("reported_step", sa.BigInteger),
    sa.column("reported_at", INSTANT),
    sa.column("report_error", sa.String),
    sa.column("report_failures", sa.Integer),
    sa.column("report_due_at", INSTANT),
)
#: What the schema allows, and where W&B puts runs without a project.
_MAX_TEXT, _MAX_TAGS, _NO_PROJECT = 200, 64, "uncategorized"
_JOBS = sa.table("jobs", sa.column("id", sa.String), sa.column("attempt", sa.Integer))


def upgrade() -> None:
    """Create the table, and move to it what stood with the fine-tuning jobs."""
    reports = op.create_table(
        "job_reports",
        sa.Column("job_id", sa.String(), sa.ForeignKey("jobs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("settings", sa.JSON(), nullable=False),
        sa.Column("run_id", sa.String(64), nullable=False),
        sa.Column("url", sa.String(2000), nullable=True),
        sa.Column("sent_step", sa.BigInteger(), nullable=True),
        sa.Column("done_at", INSTANT, nullable=True),
        sa.Column("problem", sa.String(500), nullable=True),
        sa.Column("failures", sa.Integer(), nullable=False, server_default="0"),
        sa.Column("due_at", INSTANT, nullable=True),
    )
    op.create_index("ix_job_reports_due", "job_reports", ["done_at", "due_at"])
    _clean_requests()
    if rows := _read_fine_tuning():
        op.bulk_insert(reports, rows)
    for name in ("report_due_at", "report_failures", "report_error"):
        op.drop_column("fine_tuning_jobs", name)
    for name in ("reported_at", "reported_step", "reports_to"):
        op.drop_column("fine_tuning_jobs", name)


def _clean_requests() -> None:
    """Rewrite requests that would be refused; jobs that wait for their files begin with them."""
    connection = op.get_bind()
    for row in connection.execute(sa.select(_FINE_TUNING.c.id, _FINE_TUNING.c.request)).all():
        given = row.request.get("integrations") or []
        cleaned = [{**each, "wandb": _clean(each["wandb"])} if each.get("wandb") else each for each in given]
        if cleaned != given:
            change = sa.update(_FINE_TUNING).where(_FINE_TUNING.c.id == row.id)
            connection.execute(change.values(request={**row.request, "integrations": cleaned}))


def _clean(wandb: dict[str, Any]) -> dict[str, Any]:
    """Return the settings with secrets masked, long texts cut and empty ones left out."""
    texts = {name: _clean_text(wandb.get(name) or "") for name in ("project", "entity", "name")}
    cleaned: dict[str, Any] = {name: text for name, text in texts.items() if text}
    cleaned.setdefault("project", _NO_PROJECT)
    tags = [text for each in wandb.get("tags") or [] if (text := _clean_text(each))]
    return {**cleaned, "tags": tags[:_MAX_TAGS]} if tags else cleaned


def _clean_text(text: str) -> str:
    return SECRET_SHAPES.sub("[secret]", text.replace("\x00", ""))[:_MAX_TEXT]


def _read_fine_tuning() -> list[dict[str, object]]:
    """Read the reports of fine-tuning jobs; each goes on in the run of its newest attempt."""
    query = (
        sa.select(_FINE_TUNING, _JOBS.c.attempt)
        .join(_JOBS, _JOBS.c.id == _FINE_TUNING.c.job_id)
        .where(_FINE_TUNING.c.reports_to.is_not(None))
    )
    rows = []
    for row in op.get_bind().execute(query):
        wandb = next(
            (each["wandb"] for each in row.request.get("integrations") or [] if each.get("wandb")), None
        )
        if wandb is None:
            continue
        rows.append(
            {
                "job_id": row.job_id,
                "settings": {"wandb": wandb},
                "run_id": f"{row.id}-{row.attempt}",
                "url": None,
                "sent_step": row.reported_step,
                "done_at": row.reported_at,
                "problem": row.report_error,
                "failures": row.report_failures,
                "due_at": row.report_due_at,
            }
        )
    return rows


def downgrade() -> None:
    """Drop the table: jobs no longer report; what was sent stays there."""
    op.drop_index("ix_job_reports_due", "job_reports")
    op.drop_table("job_reports")
    op.add_column("fine_tuning_jobs", sa.Column("reports_to", sa.String(16), nullable=True))
    op.add_column("fine_tuning_jobs", sa.Column("reported_step", sa.BigInteger(), nullable=True))
    op.add_column("fine_tuning_jobs", sa.Column("reported_at", INSTANT, nullable=True))
    op.add_column("fine_tuning_jobs", sa.Column("report_error", sa.String(500), nullable=True))
    op.add_column(
        "fine_tuning_jobs", sa.Column("report_failures", sa.Integer(), nullable=False, server_default="0")
    )
    op.add_column("fine_tuning_jobs", sa.Column("report_due_at", INSTANT, nullable=True))
