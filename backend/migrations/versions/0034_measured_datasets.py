"""Keep the names of the datasets that evaluations measured on, and on which dataset a score was measured."""

import json
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0034_measured_datasets"
down_revision = "0033_refused_adapters"
branch_labels = None
depends_on = None

JSON = sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def upgrade() -> None:
    """Add both columns, and fill them from what evaluations asked for; names of deleted datasets are lost."""
    op.add_column("evaluations", sa.Column("dataset_names", JSON, server_default="{}", nullable=False))
    op.add_column("evaluation_scores", sa.Column("dataset_id", sa.String(32), nullable=True))
    _fill(op.get_bind())


def downgrade() -> None:
    """Drop them."""
    op.drop_column("evaluation_scores", "dataset_id")
    op.drop_column("evaluations", "dataset_names")


def _fill(connection: sa.Connection) -> None:
    evaluations = sa.table(
        "evaluations", sa.column("id"), sa.column("request", JSON), sa.column("dataset_names", JSON)
    )
    scores = sa.table(
        "evaluation_scores",
        *(sa.column(name) for name in ("evaluation_id", "label", "benchmark", "dataset_id")),
    )
    datasets = sa.table("datasets", sa.column("id"), sa.column("name"))
    names = {row.id: row.name for row in connection.execute(sa.select(datasets.c.id, datasets.c.name))}
    custom = sa.cast(evaluations.c.request, sa.String).contains('"custom"')
    found = connection.execute(sa.select(evaluations.c.id, evaluations.c.request).where(custom)).all()
    for evaluation_id, request in found:
        measured = _list_datasets(request)
        known = {each: names[each] for each in measured.values() if each in names}
        of = evaluations.c.id == evaluation_id
        connection.execute(evaluations.update().where(of).values(dataset_names=known))
        for label, dataset_id in measured.items():
            of_label = (scores.c.evaluation_id == evaluation_id, scores.c.label == label)
            connection.execute(scores.update().where(*of_label).values(dataset_id=dataset_id))


def _list_datasets(request: Any) -> dict[str, str]:
    """Map the labels of the benchmarks on custom datasets to these datasets."""
    read = json.loads(request) if isinstance(request, str) else request
    orders = [order for order in read["benchmarks"] if order["benchmark"] == "custom"]
    return {order["label"]: order["dataset"] for order in orders}
