"""Sums of rollups, from which the clock of a run is read; filled in where a clock reads them."""

import sqlalchemy as sa
from alembic import op

revision = "0042_rollup_sums"
down_revision = "0041_model_causes"
branch_labels = None
depends_on = None

#: Seconds and tokens of each step, as the engines name them.
_KEYS = (
    "timing_s/step",
    "perf/time_per_step",
    "train/time(s)",
    "perf/total_num_tokens",
    "train/global_tokens",
)
_ROLLUP_STEPS = 64
_FILL = """
UPDATE metric_rollups SET sum = (
    SELECT COALESCE(SUM(p.value), 0) FROM metric_points p
    WHERE p.series_id = metric_rollups.series_id
      AND p.step >= metric_rollups.bucket * :width AND p.step < (metric_rollups.bucket + 1) * :width
)
WHERE odd_step IS NULL AND series_id IN (SELECT id FROM metric_series WHERE key IN :keys)
"""


def upgrade() -> None:
    """Add the column; other metrics get it as their buckets are written."""
    op.add_column("metric_rollups", sa.Column("sum", sa.Float(precision=53), nullable=True))
    fill = sa.text(_FILL).bindparams(sa.bindparam("keys", _KEYS, expanding=True), width=_ROLLUP_STEPS)
    op.get_bind().execute(fill)


def downgrade() -> None:
    """Drop the column."""
    op.drop_column("metric_rollups", "sum")
