"""Evaluations from before the names of datasets were kept: those that still exist are filled in."""

from typing import Any

from alembic import command
from sqlmodel import select
from trellis_api.core.database import Database
from trellis_api.core.migrations import check, make_config
from trellis_api.datasets.models import Dataset
from trellis_api.evaluations.models import Evaluation, EvaluationScore
from trellis_api.jobs.models import EVALUATE, Job

BEFORE = "0032_adapter_loads"
KNOWN, DELETED = "ds_aaaaaaaaaaaa", "ds_bbbbbbbbbbbb"
FACTS: dict[str, Any] = {
    "format": "prompt-answer", "format_columns": {}, "row_count": 1, "columns": [], "warnings": [],
    "size_bytes": 1, "source": {},
}  # fmt: skip


def order(label: str, dataset: str) -> dict[str, Any]:
    return {"benchmark": "custom", "label": label, "dataset": dataset, "scorer": {"kind": "exact"}}


def score(label: str, benchmark: str) -> EvaluationScore:
    return EvaluationScore(
        evaluation_id="ev_aaaaaaaaaaaa", label=label, benchmark=benchmark, metric="exact", value=1.0, n=1,
        configuration="c",
    )  # fmt: skip


def test_scores_and_names_of_earlier_evaluations_are_filled_in(unmigrated: Database) -> None:
    with unmigrated.engine.begin() as connection:
        command.upgrade(make_config(connection), "head")
    orders = [order("custom", KNOWN), order("mine", DELETED), {"benchmark": "gsm8k", "label": "gsm8k"}]
    with unmigrated.write() as session:
        session.add(Dataset(id=KNOWN, name="tickets", **FACTS))
        session.add(Job(id="job_aaaaaaaaaaaa", name="one", kind=EVALUATE, recipe="evaluate", model_id="mdl"))
        session.flush()
        session.add(
            Evaluation(
                id="ev_aaaaaaaaaaaa", job_id="job_aaaaaaaaaaaa", name="one", target_kind="model",
                target_name="m", request={"benchmarks": orders}, benchmark_names=["custom", "gsm8k"],
            )
        )  # fmt: skip
        session.flush()
        session.add_all([score("custom", "custom"), score("mine", "custom"), score("gsm8k", "gsm8k")])

    with unmigrated.engine.begin() as connection:
        command.downgrade(make_config(connection), BEFORE)
        command.upgrade(make_config(connection), "head")
        check(connection)

    with unmigrated.read() as session:
        row = session.get(Evaluation, "ev_aaaaaaaaaaaa")
        assert row is not None
        assert row.dataset_names == {KNOWN: "tickets"}
        found = {each.label: each.dataset_id for each in session.exec(select(EvaluationScore))}
        assert found == {"custom": KNOWN, "mine": DELETED, "gsm8k": None}
