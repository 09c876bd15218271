"""Tables of the metric store. Points lie sorted by (series, step), so that a chart reads one stretch.

A value that is no number: NULL stands for NaN (SQLite cannot keep NaN), infinities
are kept as they are. Both are shown as marks on the chart.
"""

from sqlalchemy import BigInteger, Column, Float, ForeignKey, Integer, String, Table, UniqueConstraint
from sqlmodel import SQLModel

#: Steps that one rollup row sums up.
ROLLUP_STEPS = 64

_Identity = BigInteger().with_variant(Integer, "sqlite")

metric_series = Table(
    "metric_series",
    SQLModel.metadata,
    Column("id", _Identity, primary_key=True, autoincrement=True),
    Column("job_id", String, ForeignKey("jobs.id", ondelete="CASCADE"), nullable=False),
    Column("key", String, nullable=False),
    UniqueConstraint("job_id", "key", name="uq_metric_series_job_key"),
)

metric_points = Table(
    "metric_points",
    SQLModel.metadata,
    Column(
        "series_id",
        BigInteger,
        ForeignKey("metric_series.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("step", BigInteger, primary_key=True, autoincrement=False),
    Column("value", Float(53), nullable=True),
    sqlite_with_rowid=False,
)

#: One row a series and bucket of ROLLUP_STEPS steps, written when a job's steps leave the bucket.
metric_rollups = Table(
    "metric_rollups",
    SQLModel.metadata,
    Column(
        "series_id",
        BigInteger,
        ForeignKey("metric_series.id", ondelete="CASCADE"),
        primary_key=True,
        autoincrement=False,
    ),
    Column("bucket", BigInteger, primary_key=True, autoincrement=False),
    Column("count", Integer, nullable=False),
    Column("min_step", BigInteger),
    Column("min_value", Float(53)),
    Column("max_step", BigInteger),
    Column("max_value", Float(53)),
    #: The first point of the bucket that is no finite number.
    Column("odd_step", BigInteger),
    Column("odd_value", Float(53)),
    #: Of the finite values. NULL in rows from before it was kept, and where it is no finite number.
    Column("sum", Float(53)),
    sqlite_with_rowid=False,
)
